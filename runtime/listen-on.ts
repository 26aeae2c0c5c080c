import type { Server } from 'node:net';
import { ConfigError } from './decode.ts';

/**
 * Makes a server listen on `host:port`, with brackets around an IPv6 host; port 0 selects any free port. Returns the
 * address. A connection that cannot be accepted later, because no descriptor is left, is closed; the server goes on.
 * @param setting Name of the flag that has the address; `alternative` says what else it may be.
 * @throws ConfigError that names the setting, when the address cannot be listened on
 */
export async function listenOn(server: Server, address: string, setting: string, alternative = ''): Promise<string> {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  const listening = Promise.withResolvers<void>();
  server.on('error', listening.reject);
  server.listen(Number(address.slice(colon + 1)), host, listening.resolve);
  await listening.promise.catch((error: unknown) => {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    const expected = `an address and port of this machine that no other process listens on${alternative}`;
    throw new ConfigError('settings', [{ path: setting, expected, got: `${address}: ${why}` }]);
  });
  const bound = server.address();
  return typeof bound === 'object' && bound !== null ? `${address.slice(0, colon)}:${bound.port}` : address;
}
