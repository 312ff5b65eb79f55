import { useEffect, useMemo, useState } from "preact/hooks";
import { catalog, get } from "../api";
import { typeColour, valueColour } from "../colours";
import { type Entity, edgesOf, findEntity, findKey, type Link, type Mode, neighbours, nodeType, search, searchModes } from "../entities";
import { CommitLink, Empty, Panel, Problem, Text, useLoad } from "../parts/basics";
import Picture from "../parts/picture";
import { address, at, branch, revision, route } from "../state";
import { brief, count, moment, plural, show } from "../text";

const FOUND_MAX = 50;
const NEAR_MAX = 60;
const MODES: Record<Mode, string> = { text: "full text", meaning: "meaning", both: "full text and meaning", contains: "contains" };

export default function Explore() {
  const [typeName, setTypeName] = useState(route.value.params.type ?? catalog.value!.nodes[0]?.name ?? "");
  const [words, setWords] = useState("");
  const [how, setHow] = useState(0);
  const [found, setFound] = useState<Entity[] | null>(null);
  const [entities, setEntities] = useState<Map<string, Entity>>(new Map());
  const [links, setLinks] = useState<Map<string, Link>>(new Map());
  const [hidden, setHidden] = useState<Set<string>>(new Set());
  const [colouring, setColouring] = useState("");
  const [chosen, setChosen] = useState<string | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const type = nodeType(typeName);
  const modes = type ? searchModes(type) : [];

  const attempt = async (work: () => Promise<void>) => {
    setError(null);
    try {
      await work();
    } catch (problem) {
      setError(problem as Error);
    }
  };
  const find = () => attempt(async () => setFound(type ? await search(type, words, modes[how], FOUND_MAX) : []));
  const add = (more: Entity[], joined: Link[] = []) => {
    setEntities((before) => new Map([...before, ...more.map((each) => [each.key, each] as const)]));
    setLinks((before) => new Map([...before, ...joined.map((each) => [each.id, each] as const)]));
  };
  const open = (entity: Entity) => {
    add([entity]);
    setChosen(entity.key);
  };

  useEffect(() => {
    void find();
  }, [typeName, revision.value]);
  useEffect(() => {
    const { type: wanted, id } = route.value.params;
    const known = wanted ? nodeType(wanted) : undefined;
    if (known && id) void attempt(async () => {
      const entity = await findEntity(known, id);
      if (entity) open(entity);
      else setError(new Error(`There is no ${known.name} '${id}' here${at.value ? " at this time" : ""}.`));
    });
  }, [route.value.params.id, revision.value]);

  const expand = (entity: Entity, place: ReturnType<typeof edgesOf>[number], skip: number) =>
    neighbours(entity, place.edge, place.isOut, skip, NEAR_MAX).then((near) => (add(near.entities, near.links), near.total));
  const forget = (key: string) => {
    setEntities((before) => new Map([...before].filter(([each]) => each !== key)));
    setLinks((before) => new Map([...before].filter(([, each]) => each.source !== key && each.target !== key)));
    setChosen(null);
  };

  const shown = [...entities.values()].filter((each) => !hidden.has(each.type));
  const values = useMemo(() => [...new Set(shown.map((each) => show(each.row[colouring])))].sort(), [entities, hidden, colouring]);
  const colour = (each: Entity) => (colouring === "" ? typeColour(each.type) : each.row[colouring] === undefined ? "#9aa1ac" : valueColour(values.indexOf(show(each.row[colouring]))));
  const dots = useMemo(() => shown.map((each) => ({ id: each.key, type: each.type, label: each.label, colour: colour(each), size: each.key === chosen ? 9 : 7 })), [entities, hidden, colouring, chosen]);
  const lines = useMemo(() => {
    const there = new Set(shown.map((each) => each.key));
    return [...links.values()].filter((each) => there.has(each.source) && there.has(each.target));
  }, [entities, links, hidden]);
  const types = [...new Set([...entities.values()].map((each) => each.type))];
  const properties = [...new Set(shown.flatMap((each) => Object.keys(each.row)))].sort();
  const current = chosen ? entities.get(chosen) : undefined;
  return (
    <div class="page explore">
      <Panel title="Find" class="find">
        <form class="form" onSubmit={(event) => (event.preventDefault(), void find())}>
          <div class="pair">
            <select aria-label="Type" value={typeName} onChange={(event) => (setTypeName(event.currentTarget.value), setHow(0), setFound(null))}>
              {catalog.value!.nodes.map((each) => <option key={each.name}>{each.name}</option>)}
            </select>
            <select aria-label="Search by" value={String(how)} onChange={(event) => setHow(Number(event.currentTarget.value))}>
              {modes.map((each, place) => <option key={place} value={String(place)}>{MODES[each.mode]}: {each.property}</option>)}
            </select>
          </div>
          <div class="pair">
            <input type="search" aria-label="Words" placeholder={modes.length ? "Words to look for" : "This type has no text"} disabled={!modes.length} value={words} onInput={(event) => setWords(event.currentTarget.value)} />
            <button class="primary">Search</button>
          </div>
        </form>
        <Problem error={error} />
        {found && found.length === 0 && <Empty title="Nothing found">No {typeName} fits.</Empty>}
        <ul class="list found">
          {found?.map((each) => (
            <li key={each.key}>
              <i class="dot" style={{ background: typeColour(each.type) }} />
              <button class="link grow" onClick={() => open(each)}><Text value={brief(each.label, 80)} /></button>
            </li>
          ))}
        </ul>
        {found && found.length === FOUND_MAX && <p class="quiet">the first {FOUND_MAX}</p>}
      </Panel>
      <Panel title="Graph" class="canvas-panel" tools={
        <>
          <span class="quiet">{plural(dots.length, "node")}, {plural(lines.length, "edge")}</span>
          <label>colour by <select value={colouring} onChange={(event) => setColouring(event.currentTarget.value)}>
            <option value="">type</option>
            {properties.map((each) => <option key={each}>{each}</option>)}
          </select></label>
          <button onClick={() => (setEntities(new Map()), setLinks(new Map()), setChosen(null))} disabled={entities.size === 0}>Clear</button>
        </>
      }>
        {entities.size === 0 && <Empty title="Nothing here yet">Choose something on the left. Then expand its neighbours, step by step.</Empty>}
        <Picture dots={dots} lines={lines} chosen={chosen} onChoose={setChosen} label="Explored graph" />
        <div class="filters">
          {colouring === "" ? types.map((each) => (
            <label key={each}><input type="checkbox" checked={!hidden.has(each)} onChange={() => setHidden((before) => { const next = new Set(before); if (!next.delete(each)) next.add(each); return next; })} />
              <i class="dot" style={{ background: typeColour(each) }} />{each}</label>
          )) : values.slice(0, 12).map((each, place) => <span key={each}><i class="dot" style={{ background: valueColour(place) }} />{brief(each, 24) || "null"}</span>)}
        </div>
      </Panel>
      {current ? <Card key={current.key} entity={current} expand={expand} forget={forget} open={setChosen} near={[...links.values()].filter((each) => each.source === current.key || each.target === current.key)} entities={entities} />
        : <Panel title="Card" class="card"><Empty title="No node chosen">A click in the picture or in the list shows its values here.</Empty></Panel>}
    </div>
  );
}

interface CardProps {
  entity: Entity;
  expand: (entity: Entity, place: ReturnType<typeof edgesOf>[number], skip: number) => Promise<number>;
  forget: (key: string) => void;
  open: (key: string) => void;
  near: Link[];
  entities: Map<string, Entity>;
}

function Card({ entity, expand, forget, open, near, entities }: CardProps) {
  const type = nodeType(entity.type)!;
  const [totals, setTotals] = useState<Record<string, { shown: number; total: number }>>({});
  const [error, setError] = useState<Error | null>(null);
  const [isBlamed, setIsBlamed] = useState(false);
  const follow = async (place: ReturnType<typeof edgesOf>[number]) => {
    const name = `${place.edge.name} ${place.isOut}`;
    const skip = totals[name]?.shown ?? 0;
    try {
      const total = await expand(entity, place, skip);
      setTotals((before) => ({ ...before, [name]: { shown: Math.min(skip + NEAR_MAX, total), total } }));
    } catch (problem) {
      setError(problem as Error);
    }
  };
  return (
    <Panel class="card" title={<><i class="dot" style={{ background: typeColour(entity.type) }} /> {entity.type} <Text value={brief(entity.label, 60)} /></>}
      tools={<button onClick={() => forget(entity.key)}>Hide</button>}>
      <Problem error={error} />
      <dl>
        <dt>id</dt><dd><bdi>{show(entity.id)}</bdi></dd>
        {Object.entries(entity.row).map(([name, value]) => <><dt>{name}</dt><dd>{value === null ? <span class="null">null</span> : <bdi>{brief(value, 1000)}</bdi>}</dd></>)}
      </dl>
      <h3>Neighbours</h3>
      {!findKey(type) && <p class="quiet">This type has no key of one property, so its neighbours cannot be asked for by id.</p>}
      <ul class="list">
        {findKey(type) && edgesOf(entity.type).map((place) => {
          const known = totals[`${place.edge.name} ${place.isOut}`];
          const isDone = known !== undefined && known.shown >= known.total;
          return (
            <li key={`${place.edge.name} ${place.isOut}`}>
              <span class="grow">{place.isOut ? `${place.edge.name} → ${place.edge.target}` : `${place.edge.source} → ${place.edge.name}`}</span>
              {known && <span class="quiet">{count(known.shown)} of {count(known.total)}</span>}
              <button disabled={isDone} aria-label={`Expand ${place.edge.name} ${place.isOut ? "out" : "in"}`} onClick={() => follow(place)}>{known && !isDone ? "More" : "Expand"}</button>
            </li>
          );
        })}
      </ul>
      {near.length > 0 && <>
        <h3>In the picture</h3>
        <ul class="list">
          {near.slice(0, 40).map((each) => {
            const other = entities.get(each.source === entity.key ? each.target : each.source);
            return other && <li key={each.id}><span class="quiet">{each.type}</span><button class="link grow" onClick={() => open(other.key)}><Text value={brief(other.label, 60)} /></button></li>;
          })}
        </ul>
      </>}
      <h3>Who wrote it</h3>
      {isBlamed ? <Blame entity={entity} /> : at.value ? <p class="quiet">Come back to now to see who wrote each value.</p> : <button onClick={() => setIsBlamed(true)}>Show commits</button>}
    </Panel>
  );
}

interface Blamed {
  properties: Record<string, { value: unknown; commit_id: string | null; actor: string | null; at: number | null }>;
}

function Blame({ entity }: { entity: Entity }) {
  const found = useLoad(() => get<Blamed>("/blame", { type: entity.type, id: entity.id, branch: branch.value }), [entity.key, branch.value]);
  if (found.error) return <Problem error={found.error} retry={found.reload} />;
  return (
    <table class="plain">
      <tbody>
        {Object.entries(found.data?.properties ?? {}).map(([name, each]) => (
          <tr key={name}>
            <td><code>{name}</code></td>
            <td>{each.commit_id ? <CommitLink href={address("history", { commit: each.commit_id })} id={each.commit_id} /> : "–"}</td>
            <td><Text value={each.actor ?? "–"} /></td>
            <td class="quiet">{each.at ? moment(each.at) : ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
