"""Languages: those that full text knows, by their ISO 639-1 code.

A language has a stemmer and, for most, stop words. `none` has neither: words are split, lowercased
and folded, and nothing else.
"""

from __future__ import annotations

DEFAULT_LANGUAGE = "en"
PLAIN = "none"
LANGUAGES = {
    "ar": "Arabic",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "hu": "Hungarian",
    "it": "Italian",
    "nl": "Dutch",
    "no": "Norwegian",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sv": "Swedish",
    "ta": "Tamil",
    "tr": "Turkish",
}
