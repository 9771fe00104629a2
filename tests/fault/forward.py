#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""forward LISTEN:PORT TO:PORT: three neighbouring TCP ports, passed on byte for byte.

Stands at each end of the wire between two network namespaces: weft talks to a
loopback address on both sides, the wire between can be cut.
"""
import asyncio
import sys


async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


async def main(here, there):
    def handler(port):
        async def handle(reader, writer):
            try:
                far_reader, far_writer = await asyncio.open_connection(there[0], port)
            except OSError:
                writer.close()
                return
            await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
        return handle

    servers = [await asyncio.start_server(handler(there[1] + n), here[0], here[1] + n) for n in range(3)]
    await asyncio.gather(*(server.serve_forever() for server in servers))


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


if __name__ == "__main__":
    asyncio.run(main(address(sys.argv[1]), address(sys.argv[2])))
