import { connect, createServer, type Socket } from 'node:net';

/** What one side sent before the other sent something again. */
export type Turn = { readonly from: 'client' | 'server'; readonly bytes: Buffer };

/** A unix socket that passes bytes on to another and remembers them. */
type ByteProxy = {
  /** The connections so far, in their order, each with its turns. */
  readonly connections: readonly (readonly Turn[])[];
  close(): void;
};

/** Opens a proxy at `path` for what listens at `target`. The caller closes it. */
export async function openByteProxy(path: string, target: string): Promise<ByteProxy> {
  const connections: Turn[][] = [];
  const server = createServer((client) => {
    const turns: Turn[] = [];
    connections.push(turns);
    const upstream = connect(target);
    passOn(client, upstream, (bytes) => note(turns, 'client', bytes));
    passOn(upstream, client, (bytes) => note(turns, 'server', bytes));
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return { connections, close: () => void server.close() };
}

function passOn(from: Socket, to: Socket, see: (bytes: Buffer) => void): void {
  from.on('data', (bytes: Buffer) => {
    see(bytes);
    to.write(bytes);
  });
  from.on('close', () => to.destroy());
  from.on('error', () => to.destroy());
}

function note(turns: Turn[], from: Turn['from'], bytes: Buffer): void {
  const last = turns.at(-1);
  if (last?.from === from) turns[turns.length - 1] = { from, bytes: Buffer.concat([last.bytes, bytes]) };
  else turns.push({ from, bytes });
}
