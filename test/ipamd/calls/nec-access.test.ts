import test from 'ava';
import { readNec } from '../../../ipamd/calls/nec-access.ts';
import type { NodeDeps } from '../../../ipamd/calls/node-deps.ts';
import { NodeMemories } from '../../../ipamd/calls/node-memory.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const OBJECT: KubeObject = {
  apiVersion: NODE_ENI_CONFIGS.group,
  kind: NODE_ENI_CONFIGS.kind,
  metadata: { name: 'n1', uid: 'u1', resourceVersion: '7' },
};
const signal = new AbortController().signal;

/** What reading an object needs, with a cache that has lost it. */
function depsWith(stored: KubeObject | undefined) {
  let reads = 0;
  const parts = {
    necs: { get: () => undefined, note: () => undefined, forget: () => undefined },
    kube: {
      get: async () => {
        reads += 1;
        return stored;
      },
    },
  };
  // Nothing else is read.
  return { deps: parts as unknown as NodeDeps, reads: () => reads };
}

test('readNec: asks the API server for an object that the cache has lost while a call for it is under way', async (t) => {
  const { deps, reads } = depsWith(OBJECT);
  const memory = new NodeMemories(new VirtualClock()).of('n1');
  memory.calls.set('i1', { kind: 'send', endedMs: undefined, outcome: undefined, ended: Promise.resolve() });
  t.is((await readNec(deps, 'n1', memory, signal))?.object.metadata.uid, 'u1');
  t.is(reads(), 1);
});

test('readNec: believes the cache that an object is gone for which nothing is under way', async (t) => {
  const { deps, reads } = depsWith(undefined);
  t.is(await readNec(deps, 'n1', new NodeMemories(new VirtualClock()).of('n1'), signal), undefined);
  t.is(reads(), 0);
});
