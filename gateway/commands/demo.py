"""`hearth demo`: the gateway with a real small model on this machine, without any key."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hearth.gateway.commands.client import GatewayError, Rest
from hearth.gateway.commands.options import Json, Port
from hearth.gateway.commands.output import fail, note, say, say_json, waiting

if TYPE_CHECKING:
    from hearth.config.settings import Settings

HOST = "127.0.0.1"
MODEL = "smollm2"
"""The demo's model as the gateway names it; any other name reaches it too."""
INSTALL = "the demo's model is not installed; install it with: pip install 'hearth[demo]'"

CURL = """\
curl {url}/v1/chat/completions -H "content-type: application/json" \\
  -d '{{"model": "{model}", "messages": [{{"role": "user", "content": "My dog is called Zebedee."}}]}}'"""
PYTHON = """\
from openai import OpenAI

client = OpenAI(base_url="{url}/v1", api_key="none")
question = {{"role": "user", "content": "What is the name of my dog?"}}
answer = client.chat.completions.with_raw_response.create(model="{model}", messages=[question])
print(answer.headers["x-hearth-recalled"], "recalled:", answer.parse().choices[0].message.content)"""


def demo(
    port: Port = 4000,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Where memory stays; else a folder that goes at the end.", show_default=False),
    ] = None,
    script: Annotated[
        bool, typer.Option("--script", help="Hold two short conversations, show what was recalled, and end.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Start everything without a key: a real small model (SmolLM2, 135M) and the gateway in front of it.

    Prints a curl and a Python snippet to paste in another terminal. The model is small: it shows what memory
    puts into the prompt, not how well a model can use it. --json prints the turns of --script.

    Example: hearth demo --script
    """
    from hearth.gateway.commands.serving import run, stop
    from hearth.gateway.commands.settings import refuse_problems

    url, failures = f"http://{HOST}:{port}", []

    def ready(seconds: float) -> None:
        note(f"Ready after {seconds:.0f} s.")
        if not script:
            show_snippets(url)
            return
        try:
            play_script(url, as_json=as_json)
        except GatewayError as error:
            failures.append(error)
        finally:
            stop()

    with ExitStack() as stack:
        folder = data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hearth-demo-")))
        settings = demo_settings(_model(stack), folder)
        refuse_problems(settings, host=HOST)
        os.environ.setdefault(
            "LITELLM_LOG", "ERROR"
        )  # its start warns of settings that a demo has no use for
        run(settings, host=HOST, port=port, ready=ready, quiet=True)
    if failures:
        fail(failures[0])


def demo_settings(model_url: str, folder: Path) -> Settings:
    """The keyless configuration in front of the local model, with memory in the folder."""
    import yaml

    from hearth.config.load import parse_settings

    upstream = {
        "model": f"hosted_vllm/{MODEL}",  # LiteLLM's name for any server of chat completions
        "api_base": f"{model_url}/v1",
        "api_key": "none",
    }
    document = {
        "model_list": [{"model_name": name, "litellm_params": upstream} for name in (MODEL, "*")],
        "hearth": {"keyless": True, "data_dir": str(folder)},
    }
    environ = {name: value for name, value in os.environ.items() if name != "HEARTH_DATA_DIR"}
    return parse_settings(yaml.safe_dump(document), environ, source="demo")


def show_snippets(url: str) -> None:
    """Print what to paste: a statement by curl, and a question in another conversation by OpenAI's SDK."""
    note(f"OpenAI base URL {url}/v1, Anthropic base URL {url}, any key, any model name. Ctrl-C ends it.")
    note("\nTell it something:", style="bold")
    say(CURL.format(url=url, model=MODEL))
    note("\nAsk about it in a new conversation, from Python:", style="bold")
    say(PYTHON.format(url=url, model=MODEL))
    note(
        "\nOr chat, and see what is recalled: hearth chat"
        + ("" if url.endswith(":4000") else f" --url {url}")
    )


def play_script(url: str, *, as_json: bool) -> None:
    """Hold the script's conversations and print them. Raises GatewayError."""
    from hearth.gateway.commands.script import play, show

    rest = Rest(url, "", "")
    turns = []
    with rest.http:
        for spoken in play(rest, MODEL):
            turns.append(spoken.document())
            if not as_json:
                show(spoken)
    if as_json:
        say_json({"turns": turns})


def _model(stack: ExitStack) -> str:
    """The address of the model's server, which ends with the stack."""
    from hearth.gateway.demo_model import DemoModelMissingError, LlamaServer

    try:
        with waiting("Starting the model …"):
            return stack.enter_context(LlamaServer()).url
    except DemoModelMissingError:
        fail(INSTALL)
    except (RuntimeError, TimeoutError) as error:
        fail(error)
