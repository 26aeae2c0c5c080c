import { fileURLToPath } from 'node:url';
import type { Child } from '../../../sim/support/child.ts';
import { waitUntil } from '../../support/wait-until.ts';
import type { SystemPod } from '../system-node.ts';

/** What a server does at SIGTERM. */
export type AtEnd = 'finish' | 'ignore' | 'exit';

const PORT = 80;

/** A Pod that serves a page on port 80. */
export type WebPod = {
  readonly pod: SystemPod;
  readonly server: Child;
  /** Clients of the page, as the log of the server has them. */
  clients(): readonly string[];
  /** X-Forwarded-For of each request, `-` without. */
  forwarded(): readonly string[];
};

/** Starts the server of a Pod, and waits until it serves. The caller stops it. */
export async function serveIn(pod: SystemPod, atEnd: AtEnd = 'finish'): Promise<WebPod> {
  const script = fileURLToPath(new URL('web-server.ts', import.meta.url));
  const server = pod.sandbox.netns.start([process.execPath, script, pod.name, `${PORT}`, atEnd]);
  await waitUntil(() => server.stdout.includes('ready\n'), {
    what: `the server of ${pod.name}`,
    timeoutMs: 30_000,
    everyMs: 20,
    explain: () => server.stderr,
  });
  const clients = (): readonly string[] =>
    server.stdout.split('\n').flatMap((line) => (line.includes('"GET ') ? [line.split(' ')[0] ?? ''] : []));
  const forwarded = (): readonly string[] =>
    server.stdout.split('\n').flatMap((line) => (line.includes('"GET ') ? [line.split('"').at(-2) ?? ''] : []));
  return { pod, server, clients, forwarded };
}
