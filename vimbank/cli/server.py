"""serve."""

import json
from contextlib import closing

import click

from vimbank.api.server import serve as run_server
from vimbank.cli.command import Call, command
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs

__all__ = ["serve"]


@command("serve", example="vimbank serve --port 8080 --data ./data --allow-anonymous", tenant=False)
@click.option("--host", help="Address to listen on.  [default: VIMBANK_API__HOST, else 127.0.0.1]")
@click.option("--port", type=int, help="Port; 0: any free one.  [default: VIMBANK_API__PORT, else 8080]")
@click.option("--allow-anonymous", is_flag=True, help="Serve without keys; on loopback only.")
def serve(call: Call, host: str | None, port: int | None, allow_anonymous: bool) -> None:
    """Serve the REST API until interrupted; prints the address once it answers."""
    given = {"host": host, "port": port, "allow_anonymous": allow_anonymous or None}
    settings = call.settings(api={name: value for name, value in given.items() if value is not None})

    def ready(address: str) -> None:
        click.echo(json.dumps({"address": address}) if call.json else address)

    with open_service(settings) as service, closing(open_jobs(settings, service, serve=True)) as jobs:
        run_server(service, settings, jobs, ready=ready)
