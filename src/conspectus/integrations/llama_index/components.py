"""Components of LlamaIndex that are serialized as models."""

from typing import Any

from llama_index.core.bridge.pydantic import BaseModel, ConfigDict, PrivateAttr

from conspectus.bridge.engine_access import EngineAccess, access_to
from conspectus.bridge.engine_user import EngineUser
from conspectus.integrations.chat_messages import Turns
from conspectus.integrations.llama_index.messages import FORM
from conspectus.model.memory import MEMORY, Scope


class OnEngine(EngineUser, BaseModel):
    """A LlamaIndex component that is serialized as a model. `engine` is an engine, or the path of a store."""

    model_config = ConfigDict(extra="forbid")

    engine: Any = None
    _access: EngineAccess = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Create the access to the engine."""
        super().model_post_init(context)
        self._access = access_to(self.engine)


class OfPeople(OnEngine):
    """Stores memories of a user and an agent, by conversation."""

    user: str | None = None
    agent: str | None = None
    collection: str = MEMORY

    def _turns(self, key: str | None) -> Turns:
        return Turns(Scope(self.user, self.agent, key), FORM, self.collection)
