import test from 'ava';
import { reportStartupTaints } from '../../../ipamd/nodes/startup-taints.ts';
import type { Logger } from '../../../runtime/log.ts';
import { startInProcessApi } from '../../../sim/kube-api/in-process.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const INVOLVED = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'tke-eni-ipamd' };
const NOBODY = { username: 'nobody', groups: ['system:authenticated'] };
const SIGNAL = new AbortController().signal;

/** Reports to an API server that gives the administrator every right and others none; returns what was said. */
async function report(
  taints: readonly string[],
  { mayPatch = true, isAway = false }: { readonly mayPatch?: boolean; readonly isAway?: boolean } = {},
): Promise<readonly string[]> {
  const server = startInProcessApi({ clock: new VirtualClock(), authorization: 'rbac' });
  if (isAway) server.partition();
  const said: string[] = [];
  const say = (message: string, fields?: object) => said.push(`${message} ${JSON.stringify(fields)}`);
  const log: Logger = { debug: () => {}, info: say, warn: say, error: say, child: () => log };
  const events = {
    record: (event: { reason: string; message: string }) => said.push(`${event.reason}: ${event.message}`),
  };
  const kube = server.client(mayPatch ? {} : { user: NOBODY });
  await reportStartupTaints({ kube, log, events, involved: INVOLVED }, taints, SIGNAL);
  return said;
}

test('reportStartupTaints: says which taints go', async (t) => {
  const said = await report(['example.com/boot']);
  t.deepEqual(said, ['startup taints are removed from nodes that can serve Pods {"taints":["example.com/boot"]}']);
});
test('reportStartupTaints: without the right to patch Nodes it says that they stay, and who has to grant it', async (t) => {
  const [line, event, ...more] = await report(['example.com/boot'], { mayPatch: false });
  t.regex(line ?? '', /^startup taints stay on nodes/);
  t.regex(event ?? '', /^Forbidden: tke-eni-ipamd may not patch nodes: .*example\.com\/boot.* stay on new nodes/);
  t.regex(event ?? '', /the agent has no right to change taints either$/);
  t.deepEqual(more, []);
});
test('reportStartupTaints: says nothing when the API server does not answer, or without taints', async (t) => {
  t.deepEqual(await report(['example.com/boot'], { isAway: true }), []);
  t.deepEqual(await report([], { mayPatch: false }), []);
});
