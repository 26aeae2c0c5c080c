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
const INTENT = {
  ...{ id: 'i', action: 'AttachNetworkInterface', eniID: 'eni-1', instanceID: 'ins-1', phase: 'Unclear' },
  ...{ leaderEpoch: 1, requestTimeoutSeconds: 60 },
};

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
      memory: new NodeMemories(clock),
      breakers: new CircuitBreakers(clock),
      cloudObserver: { observe },
    };
    const leader = { epoch: 1, term: { leaseMs: 30_000 } };
    if (sinceMs !== undefined) base.memory.of('n1').eniSinceMs.set('eni-1', clock.monotonicMs() + sinceMs);
    const deps = { ...base, leader, metrics: createIpamdMetrics(clock, { release: 'test' }) } as unknown as NodeDeps;
    const one = { node: 'n1', uid: 'u', intent: INTENT as never, status: {}, priority: 'pod' } as const;
    return await clock.run(resolveUntilKnown(deps, one, new AbortController().signal));
  };
  t.like(await outcomeAfter(1), { kind: 'done' });
  t.like(await outcomeAfter(2), { kind: 'refused', error: { code: 'ENI_GONE' } });
  t.like(await outcomeAfter(2, 0), { kind: 'done' }, 'made a moment ago');
  t.like(await outcomeAfter(2, -59_000), { kind: 'refused' }, 'older than a description is by the second look');
  t.like(await outcomeAfter(1_000, 0), { kind: 'refused', error: { code: 'ENI_GONE' } }, 'gone after all');
});

test('resolveUntilKnown: a move is not refused by a description that may be older than its request, which may be late', async (t) => {
  const clock = new VirtualClock();
  const enis = new Map(['eni-1', 'eni-2'].map((eniID) => [eniID, { ...ENI, ...NET, eniID }]));
  const move = { ...INTENT, action: 'MigratePrivateIpAddress', targetENIID: 'eni-2', ips: ['10.0.1.9'] };
  const secondsUntilRefused = async (code: string) => {
    const deps = {
      clock,
      memory: new NodeMemories(clock),
      breakers: new CircuitBreakers(clock),
      cloudObserver: { observe: async () => ({ enis, isComplete: true }) },
      leader: { epoch: 1, term: { leaseMs: 30_000 } },
      metrics: createIpamdMetrics(clock, { release: 'test' }),
    } as unknown as NodeDeps;
    const beganMs = clock.monotonicMs();
    const intent = { ...move, lastError: { code, message: 'no answer' } } as never;
    const one = { node: 'n1', uid: 'u', intent, status: {}, priority: 'pod' } as const;
    const outcome = await clock.run(resolveUntilKnown(deps, one, new AbortController().signal));
    t.like(outcome, { kind: 'refused', error: { code: 'NOT_MOVED' } });
    return Math.round((clock.monotonicMs() - beganMs) / 1000);
  };
  const afterAnswer = await secondsUntilRefused('InternalError');
  t.true(afterAnswer >= 60 && afterAnswer < 80, `${afterAnswer} s`);
  const afterSilence = await secondsUntilRefused('TIMEOUT');
  t.true(afterSilence >= 120 && afterSilence < 145, `${afterSilence} s`);
});
