import test from 'ava';
import { attach } from '../../../agent/attachment/attach.ts';
import { addOf, createTestNode, PATIENT } from './fixtures.ts';

test('attach: is seen as demand while it waits for an address, and no longer', async (t) => {
  const node = createTestNode(1);
  t.teardown(() => node.close());
  const seen: (readonly string[])[] = [];
  const deps = {
    ...node.deps,
    settings: { ...node.deps.settings, addWaitMs: 20 },
    demandChanged: () => void seen.push([...node.state.addsWaiting.values()].map(({ podName }) => podName)),
  };
  t.is((await attach(deps, addOf(1), PATIENT)).kind, 'attached');
  t.true(seen.every((names) => names.length === 0));
  seen.length = 0;
  const waiting = attach(deps, addOf(2), PATIENT);
  await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(seen.at(-1), ['p2']);
  node.clock.advance(1_000);
  t.is((await waiting).kind, 'failed');
  t.deepEqual(seen.at(-1), []);
  t.is(node.state.addsWaiting.size, 0);
});
