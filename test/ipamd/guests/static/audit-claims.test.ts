import test from 'ava';
import { CloudError } from '../../../../cloud/cloud-error.ts';
import { POD_ANNOTATION } from '../../../../crd/names.ts';
import { createPodDecoder } from '../../../../ipamd/cache/pod-facts.ts';
import { decodeVip } from '../../../../ipamd/cache/record-facts.ts';
import { AddressConflicts } from '../../../../ipamd/guests/static/address-conflicts.ts';
import { runClaimAudit } from '../../../../ipamd/guests/static/audit-claims.ts';
import type { ClaimsTerm } from '../../../../ipamd/guests/static/claims-term.ts';
import { createIpamdMetrics } from '../../../../ipamd/observability/metrics.ts';
import { silentLogger } from '../../../../runtime/log.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const INTERVAL_MS = 60_000;
/** The cloud does not answer. */
const AWAY = { code: 'TIMEOUT', action: 'DescribeUsedIpAddress', text: 'away', retry: 'backoff', afterMs: 0 } as const;

/** What an informer of an audit shows, and no more. */
function informerOf(objects: Readonly<Record<string, unknown>>) {
  const map = new Map(Object.entries(objects));
  return { isSynced: true, get: (key: string) => map.get(key), keys: () => map.keys(), values: () => map.values() };
}

function vipOf(ip: string, spec: object, phase: string) {
  const claimRef = { namespace: 'default', name: 'db-0' };
  return decodeVip({
    apiVersion: 'networking.tke.cloud.tencent.com/v1',
    kind: 'VpcIP',
    metadata: { name: ip, resourceVersion: '1' },
    spec: { type: 'Pod', ip, claimRef, ...spec },
    status: { phase },
  } as never);
}

const POD = createPodDecoder()({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web-0', namespace: 'default', uid: 'u1', annotations: { [POD_ANNOTATION.deletePolicy]: 'Never' } },
  spec: { nodeName: 'a' },
} as never);

test('runClaimAudit: tells what lasts and what cannot be read, has it looked at, and asks the cloud who has what is on no ENI', async (t) => {
  const clock = new VirtualClock();
  const [events, woken, outcomes]: [string[], string[], unknown[]] = [[], [], []];
  const taken = new AddressConflicts(
    clock,
    () => 0,
    async () => undefined,
  );
  const metrics = createIpamdMetrics(clock, { release: 'test' });
  metrics.claimAudits.inc = ({ outcome }) => outcomes.push(outcome);
  let isAway = false;
  const usersOf = async () => {
    if (isAway) throw new CloudError(AWAY);
    return [{ ip: '10.1.0.9', resourceType: 'CVM', resourceId: 'ins-other' }];
  };
  const fault = { path: 'spec.ips', expected: 'a list', got: '7' };
  const deps = {
    cloud: { subnets: { usersOf } },
    pods: informerOf({ 'default/web-0': POD }),
    necs: informerOf({ a: { name: 'a', decoded: { status: { vpcID: 'vpc-1', eniInfos: [] } } } }),
    vips: informerOf({
      '10.1.0.9': vipOf('10.1.0.9', {}, 'Kept'),
      '10.1.0.8': vipOf('10.1.0.8', { ip: 8 }, 'Bound'),
    }),
    claims: informerOf({ 'default/db-0': { key: 'default/db-0', uid: 'c1', isRecord: false } }),
    configs: informerOf({
      'default/rule': { decoded: undefined, faults: [fault] },
      'default/long': { decoded: { spec: { claimExpiredDuration: '5m' } }, faults: [] },
      'default/short': { decoded: { spec: { claimExpiredDuration: '4m59s' } }, faults: [] },
    }),
    conflicts: taken,
    queues: { claims: { add: (key: string) => woken.push(key) } },
    clock,
    log: silentLogger,
    events: {
      record: ({
        involved,
        reason,
        message,
      }: {
        involved: { kind: string; name: string };
        reason: string;
        message: string;
      }) => events.push(`${reason} ${involved.kind}/${involved.name}: ${message}`),
    },
    config: { claimAuditIntervalMs: INTERVAL_MS },
    metrics,
  };
  const stop = new AbortController();
  const running = runClaimAudit(deps as unknown as ClaimsTerm, stop.signal);
  await clock.advance(INTERVAL_MS + 1);
  t.deepEqual(
    events.map((one) => one.split(':')[0]),
    ['ObjectInvalid VpcIP/10.1.0.8', 'ObjectInvalid StaticIPConfig/rule', 'ObjectInvalid StaticIPConfig/short'],
  );
  t.regex(events[2] ?? '', /short: spec\.claimExpiredDuration: expected a duration of at least 5m .*, got "4m59s"$/);
  t.is(events[1], 'ObjectInvalid StaticIPConfig/rule: spec.ips: expected a list, got 7');
  t.true(woken.includes('default/web-0') && woken.includes('default/db-0'));
  t.regex(taken.of('default/db-0')?.message ?? '', /^10\.1\.0\.9 is of CVM ins-other/);
  isAway = true;
  await clock.advance(INTERVAL_MS);
  t.deepEqual(events.slice(3), ['ClaimDiffers VpcIPClaim/web-0: the Pod asks for a kept address and has no claim']);
  t.deepEqual(outcomes, ['done', 'unasked']);
  stop.abort();
  await clock.run(running);
});
