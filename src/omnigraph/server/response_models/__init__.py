"""Response models: what operations answer, for the OpenAPI document.

Responses are encoded straight from dictionaries; a test holds every one of them against these.
Both vocabularies are in each model, so a model has each fact twice where clients differ.
"""

# ruff: noqa: F403 — one namespace of models, in files by subject
from omnigraph.server.response_models.base import *
from omnigraph.server.response_models.branches import *
from omnigraph.server.response_models.editor import *
from omnigraph.server.response_models.errors import *
from omnigraph.server.response_models.history import *
from omnigraph.server.response_models.reads import *
from omnigraph.server.response_models.schema import *
from omnigraph.server.response_models.service import *
from omnigraph.server.response_models.writes import *
