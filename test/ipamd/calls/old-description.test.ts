import test from 'ava';
import { CircuitBreakers } from '../../../ipamd/calls/circuit-breakers.ts';
import type { NodeDeps } from '../../../ipamd/calls/node-deps.ts';
import { NodeMemories } from '../../../ipamd/calls/node-memory.ts';
import { resolveUntilKnown } from '../../../ipamd/calls/run-intent.ts';
import { createIpamdMetrics } from '../../../ipamd/observability/metrics.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const ENI = {
  eniID: 'eni-1',
  mac: '20:90:6f:00:00:01',
  state: 'AVAILABLE',
  instanceID: 'ins-1',
  ips: [],
  pendingIps: [],
};
const NET = {
  primaryIP: '10.0.1.2',
  gateway: '10.0.1.1',
  subnetID: 'subnet-a',
  subnetCIDR: '10.0.1.0/24',
  deviceIndex: 1,
};
const INTENT = { id: 'i', action: 'AttachNetworkInterface', eniID: 'eni-1', instanceID: 'ins-1', phase: 'Unclear' };

test('resolveUntilKnown: an ENI counts as gone when two descriptions lack it that cannot be older than it is', async (t) => {
  const clock = new VirtualClock();
  const outcomeAfter = async (lacking: number, sinceMs?: number) => {
    let looks = 0;
    const observe = async () => ({
      enis: new Map(looks++ < lacking ? [] : [['eni-1', { ...ENI, ...NET }]]),
      isComplete: true,
    });
    const base = {
      clock,
      memory: new NodeMemories(),
      breakers: new CircuitBreakers(clock),
      cloudObserver: { observe },
    };
    if (sinceMs !== undefined) base.memory.of('n1').eniSinceMs.set('eni-1', clock.monotonicMs() + sinceMs);
    const deps = { ...base, metrics: createIpamdMetrics(clock, { release: 'test' }) } as unknown as NodeDeps;
    const one = { node: 'n1', uid: 'u', intent: INTENT as never, status: {}, priority: 'pod' } as const;
    return await clock.run(resolveUntilKnown(deps, one, new AbortController().signal));
  };
  t.like(await outcomeAfter(1), { kind: 'done' });
  t.like(await outcomeAfter(2), { kind: 'refused', error: { code: 'ENI_GONE' } });
  t.like(await outcomeAfter(2, 0), { kind: 'done' }, 'made a moment ago');
  t.like(await outcomeAfter(2, -59_000), { kind: 'refused' }, 'older than a description is by the second look');
  t.like(await outcomeAfter(1_000, 0), { kind: 'refused', error: { code: 'ENI_GONE' } }, 'gone after all');
});
