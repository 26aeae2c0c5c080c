import test from 'ava';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { countAssigned, createSystem, type System } from '../system/system.ts';

let system: System;

test.before(async () => {
  system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'n2' }], ipamds: 1 });
  for (const { name } of system.nodes) await system.awaitNec(name, 'warm', (nec) => countAssigned(nec) >= 5);
});
test.after.always(() => system?.close());

test.serial('the cloud key is rotated while ipamd runs: the new file is read, nothing is lost', async (t) => {
  const { credentials } = system.cloud.server;
  const [ipamd] = system.ipamds;
  const next = credentials.add('AKIDnext', 'secret-1');
  ipamd?.writeKey(next);
  credentials.revoke(system.cloud.key.secretId);
  const names = Array.from({ length: 5 }, (_, index) => `rotated-${index}`);
  await Promise.all(names.map((name) => system.node('n1').runPod(name)));
  await system.awaitNec('n1', 'ten addresses', (nec) => countAssigned(nec) >= 10);
  t.deepEqual(await auditThreeWays(system), []);
});

test.serial('the cloud key expired: Pods run on warm addresses, and all goes on with a key that is good', async (t) => {
  const { credentials } = system.cloud.server;
  credentials.revoke();
  const names = Array.from({ length: 4 }, (_, index) => `expired-${index}`);
  const node = system.node('n2');
  await Promise.all(names.map((name) => node.runPod(name)));
  system.ipamds[0]?.writeKey(credentials.add('AKIDthird', 'secret-2'));
  await system.awaitNec('n2', 'nine addresses', (nec) => countAssigned(nec) >= 9, 60_000);
  t.deepEqual(await auditThreeWays(system), []);
});

test.serial('the tokens for the API server are rotated while agent and ipamd run', async (t) => {
  system.rotateTokens();
  const node = system.node('n1');
  await node.runPod('new-token');
  await system.awaitNec('n1', 'eleven addresses', (nec) => countAssigned(nec) >= 11, 60_000);
  t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
});
