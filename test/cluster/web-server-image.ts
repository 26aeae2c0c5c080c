import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TarEntry } from '../../runtime/tar.ts';
import { writeImage } from '../../tools/image/archive.ts';
import { findLibraries } from '../../tools/image/libraries.ts';
import { orderLayers } from '../../tools/image/tree.ts';
import type { ClusterNode } from './cluster-node.ts';

/**
 * Image of the server of pages: Node.js with test/system/balanced/web-server.ts. By itself it serves on port 80 and prints a
 * line for each request, the client's address first; arguments of a container are those of the server.
 */
export const WEB_SERVER_IMAGE = 'localhost/web-server:1';

const SERVER = fileURLToPath(new URL('../system/balanced/web-server.ts', import.meta.url));

/** Gives nodes the image of the server of pages; `dir` gets its file. @throws Error when a library of Node.js is missing */
export async function loadWebServer(dir: string, nodes: readonly ClusterNode[]): Promise<void> {
  const path = join(dir, 'web-server.tar');
  const node = realpathSync(process.execPath);
  const libraries = findLibraries([node]).map(({ path: at, source }): TarEntry => {
    return { kind: 'copy', path: at.slice(1), source, mode: 0o755 };
  });
  await writeImage(path, {
    reference: WEB_SERVER_IMAGE,
    entrypoint: ['/usr/bin/node', '/srv/web-server.mts'],
    env: ['PATH=/usr/bin'],
    layers: orderLayers([
      {
        name: 'node',
        entries: [
          ...['lib', 'lib64'].map((name): TarEntry => ({ kind: 'symlink', path: name, target: `usr/${name}` })),
          { kind: 'folder', path: 'tmp', mode: 0o1777 },
          { kind: 'copy', path: 'usr/bin/node', source: node, mode: 0o755 },
          ...libraries,
        ],
      },
      { name: 'server', entries: [{ kind: 'copy', path: 'srv/web-server.mts', source: SERVER }] },
    ]),
  });
  await Promise.all(nodes.map((one) => one.importImage(path)));
}
