"""The socket that the API listens at."""

import asyncio
import socket

from ops.cli.listening import bind, url_of


async def test_an_answer_in_two_parts_does_not_wait_for_the_client_to_confirm_the_first() -> None:
    """Else every answer that took longer than a moment takes 40 ms more: head and body are two packets."""
    set_on: list[int] = []

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        set_on.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    sock = bind("127.0.0.1", 0)
    async with await asyncio.start_server(serve, sock=sock):
        host, port = url_of(sock).removeprefix("http://").rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        await reader.read()
        writer.close()
    assert set_on and all(set_on)
