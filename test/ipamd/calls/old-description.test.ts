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

test('resolveUntilKnown: an ENI that one description lacks is not taken for gone, and one that two lack is', async (t) => {
  const clock = new VirtualClock();
  const outcomeAfter = async (lacking: number) => {
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
    const deps = { ...base, metrics: createIpamdMetrics(clock, { release: 'test' }) } as unknown as NodeDeps;
    const one = { node: 'n1', uid: 'u', intent: INTENT as never, status: {}, priority: 'pod' } as const;
    return await clock.run(resolveUntilKnown(deps, one, new AbortController().signal));
  };
  t.like(await outcomeAfter(1), { kind: 'done' });
  t.like(await outcomeAfter(2), { kind: 'refused', error: { code: 'ENI_GONE' } });
});
