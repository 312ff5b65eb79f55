"""The nine questions in SQL that both SQLite and DuckDB run."""

from __future__ import annotations

QUESTIONS = {
    "q1": """SELECT p.key, p.name, count(*) n FROM "Follows" f JOIN "Person" p ON f.dst = p.key
             GROUP BY p.key, p.name ORDER BY n DESC LIMIT 3""",
    "q2": """SELECT p.key, c.city, c.country, count(*) n FROM "Follows" f
             JOIN "Person" p ON f.dst = p.key JOIN "LivesIn" l ON l.src = p.key
             JOIN "City" c ON c.key = l.dst
             GROUP BY p.key, c.city, c.country ORDER BY n DESC LIMIT 1""",
    "q3": """SELECT c.city, avg(p.age) n FROM "Person" p JOIN "LivesIn" l ON l.src = p.key
             JOIN "City" c ON c.key = l.dst JOIN "CityIn" ci ON ci.src = c.key
             JOIN "StateIn" si ON si.src = ci.dst JOIN "Country" co ON co.key = si.dst
             WHERE co.country = $country GROUP BY c.key, c.city ORDER BY n LIMIT 5""",
    "q4": """SELECT co.country, count(*) n FROM "Person" p JOIN "LivesIn" l ON l.src = p.key
             JOIN "CityIn" ci ON ci.src = l.dst JOIN "StateIn" si ON si.src = ci.dst
             JOIN "Country" co ON co.key = si.dst WHERE p.age >= $low AND p.age <= $high
             GROUP BY co.country ORDER BY n DESC LIMIT 3""",
    "q5": """SELECT count(*) n FROM "Person" p JOIN "HasInterest" h ON h.src = p.key
             JOIN "Interest" i ON i.key = h.dst JOIN "LivesIn" l ON l.src = p.key
             JOIN "City" c ON c.key = l.dst WHERE i.interest = $interest AND p.gender = $gender
             AND c.city = $city AND c.country = $country""",
    "q6": """SELECT c.city, c.country, count(*) n FROM "Person" p
             JOIN "HasInterest" h ON h.src = p.key JOIN "Interest" i ON i.key = h.dst
             JOIN "LivesIn" l ON l.src = p.key JOIN "City" c ON c.key = l.dst
             WHERE i.interest = $interest AND p.gender = $gender
             GROUP BY c.city, c.country ORDER BY n DESC LIMIT 5""",
    "q7": """SELECT s.state, count(*) n FROM "Person" p JOIN "LivesIn" l ON l.src = p.key
             JOIN "CityIn" ci ON ci.src = l.dst JOIN "State" s ON s.key = ci.dst
             JOIN "HasInterest" h ON h.src = p.key JOIN "Interest" i ON i.key = h.dst
             WHERE p.age >= $low AND p.age <= $high AND s.country = $country
             AND i.interest = $interest GROUP BY s.state ORDER BY n DESC LIMIT 1""",
    "q8": 'SELECT count(*) n FROM "Follows" a JOIN "Follows" b ON a.dst = b.src',
    "q9": """SELECT count(*) n FROM "Follows" a JOIN "Person" pb ON pb.key = a.dst
             JOIN "Follows" b ON a.dst = b.src JOIN "Person" pc ON pc.key = b.dst
             WHERE pb.age < $below AND pc.age > $above""",
}
POINT = 'SELECT age FROM "Person" WHERE key = $key'
