"""Requests to models on Amazon Bedrock, with every failure as one of our errors."""

import asyncio
import importlib
import json
from dataclasses import dataclass
from typing import Any

from conspectus.errors import MissingExtra, ProviderError, ProviderUnavailable
from conspectus.providers.vendor_api import number_in, refusal, waiting_time

PROVIDER = "bedrock"
TOKENS = "x-amzn-bedrock-input-token-count"


@dataclass(frozen=True, slots=True)
class BedrockResponse:
    """What a model said, and the tokens that Bedrock counted in what it was told."""

    body: Any
    tokens: int | None


class Bedrock:
    """One model on Bedrock; region and credentials are found where boto3 looks for them.

    Raises `MissingExtra` where boto3 is not installed, `ProviderError` where no region is set.
    """

    def __init__(self, model: str, *, endpoint_url: str | None = None, timeout: float = 60.0) -> None:
        self._model = model
        self._timeout = timeout
        self._errors = _library("botocore.exceptions")
        self._client = runtime_client(endpoint_url=endpoint_url, timeout=timeout)

    async def invoke(self, body: Any) -> BedrockResponse:
        """One request, in a thread of its own. Raises ProviderError, ProviderUnavailable."""
        errors = self._errors
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.to_thread(self._invoke, json.dumps(body))
        except errors.ClientError as error:
            raise _translated(error.response) from error
        except (TimeoutError, errors.ReadTimeoutError, errors.ConnectTimeoutError) as error:
            reason = f"no answer within {self._timeout:g} s"
            raise ProviderUnavailable(PROVIDER, reason) from error
        except (errors.NoCredentialsError, errors.PartialCredentialsError) as error:
            raise ProviderError(PROVIDER, "no credentials are set") from error
        except (errors.HTTPClientError, errors.ConnectionError) as error:
            reason = f"could not be reached ({type(error).__name__})"
            raise ProviderUnavailable(PROVIDER, reason) from error
        except errors.BotoCoreError as error:
            raise ProviderError(PROVIDER, f"the request failed ({type(error).__name__})") from error
        except (ValueError, RecursionError) as error:
            raise ProviderError(PROVIDER, "sent an answer that is not JSON") from error

    async def close(self) -> None:
        """Release the connections."""
        self._client.close()

    def _invoke(self, body: str) -> BedrockResponse:
        answer = self._client.invoke_model(
            modelId=self._model, body=body, contentType="application/json", accept="application/json"
        )
        content = json.loads(answer["body"].read())
        return BedrockResponse(content, number_in(answer, "ResponseMetadata", "HTTPHeaders", TOKENS))


def runtime_client(*, endpoint_url: str | None = None, timeout: float) -> Any:
    """A client that asks once. Raises MissingExtra without boto3, ProviderError where no region is set."""
    options = {"connect_timeout": timeout, "read_timeout": timeout, "retries": {"total_max_attempts": 1}}
    config = _library("botocore.config").Config(**options)
    try:
        session = _library("boto3").Session()
        return session.client("bedrock-runtime", endpoint_url=endpoint_url, config=config)
    except _library("botocore.exceptions").BotoCoreError as error:
        raise ProviderError(PROVIDER, str(error)) from error


def _translated(response: Any) -> ProviderError:
    metadata, error = response.get("ResponseMetadata", {}), response.get("Error", {})
    wait = waiting_time(metadata.get("HTTPHeaders", {}).get("retry-after"))
    words = f"{error.get('Code', '')} {error.get('Message', '')}"
    return refusal(PROVIDER, metadata.get("HTTPStatusCode", 0), words, retry_after=wait)


def _library(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra("bedrock", "boto3") from error
