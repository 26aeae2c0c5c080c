import test from 'ava';
import { decodeNec } from '../../../ipamd/cache/decode-nec.ts';
import { readNec, writeNec } from '../../../ipamd/calls/nec-access.ts';
import type { NodeDeps } from '../../../ipamd/calls/node-deps.ts';
import { NodeMemories } from '../../../ipamd/calls/node-memory.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { KubeError, type KubeErrorCode } from '../../../kube/kube-error.ts';
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

/** Lets a write of `OBJECT` fail while the cache has this version of it, and reports whether the next pass reads past the cache. */
async function readsAfter(code: KubeErrorCode, cachedVersion: string | undefined): Promise<boolean> {
  const cached = { ...OBJECT, metadata: { ...OBJECT.metadata, resourceVersion: cachedVersion ?? '' } };
  const entry = cachedVersion === undefined ? undefined : decodeNec(cached);
  let reads = 0;
  const parts = {
    necs: { get: () => entry, note: () => undefined, forget: () => undefined },
    kube: {
      update: () => Promise.reject(new KubeError({ code, request: 'PUT', text: 'no' })),
      get: async () => {
        reads += 1;
        return OBJECT;
      },
    },
    metrics: { nodeWrites: { inc: () => undefined } },
  };
  const deps = parts as unknown as NodeDeps;
  const memory = new NodeMemories(new VirtualClock()).of('n1');
  await writeNec(deps, memory, OBJECT, signal).catch(() => undefined);
  await readNec(deps, 'n1', memory, signal);
  return reads > 0;
}

test('writeNec: after a conflict the cache counts where it has a later state than was written on', async (t) => {
  t.false(await readsAfter('CONFLICT', '8'));
});

test('writeNec: after a conflict the API server is asked where the cache has no later state', async (t) => {
  t.true(await readsAfter('CONFLICT', '7'));
  t.true(await readsAfter('CONFLICT', undefined));
});

test('writeNec: a write without an answer may have happened: the API server is asked, whatever the cache has', async (t) => {
  t.true(await readsAfter('TIMEOUT', '8'));
  t.true(await readsAfter('UNAVAILABLE', '8'));
});
