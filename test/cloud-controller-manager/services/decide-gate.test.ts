import test from 'ava';
import {
  decideGate,
  type GateOwner,
  type GatePlace,
  GIVE_UP_MS,
} from '../../../cloud-controller-manager/services/decide-gate.ts';

const place = (health: GatePlace['health']): GatePlace => ({ place: 'TCP/80', ip: '10.0.1.1', port: 8_080, health });
const service = (changes: Partial<GateOwner> = {}): GateOwner => ({
  kind: 'service',
  key: 'shop/web',
  state: 'planned',
  binding: 'possible',
  places: [place('healthy')],
  ...changes,
});
const decide = (services: readonly GateOwner[], waitedMs = 0): string => {
  const { status, reason } = decideGate(services, waitedMs);
  return `${status} ${reason}`;
};
const FOR_EVER = Number.POSITIVE_INFINITY;

test('a gate is True when each load balancer has the Pod as a healthy target', (t) => {
  t.is(decide([service()]), 'True Registered');
  t.is(decide([service({ places: [place('unchecked')] })]), 'True Registered');
  t.is(decide([service(), service({ key: 'shop/api', places: [place('missing')] })]), 'False NotRegistered');
  t.is(decide([service({ places: [place('healthy'), place('unknown')] })]), 'False HealthUnknown');
  t.is(decide([service({ places: [place('unknown'), place('unhealthy')] })]), 'False Unhealthy');
});

test('a gate is True when no load balancer can have the Pod', (t) => {
  t.is(decide([]), 'True NoLoadBalancer');
  t.is(decide([service({ binding: 'impossible', places: [] })]), 'True NoLoadBalancer');
  t.is(decide([service({ binding: 'impossible', places: [] }), service()]), 'True Registered');
});

test('what the cloud and the Pod decide is waited for, however long it takes', (t) => {
  const waiting: readonly (readonly [Partial<GateOwner>, string])[] = [
    [{ state: 'unknown', places: [] }, 'NotRegistered'],
    [{ places: [place('missing')] }, 'NotRegistered'],
    [{ places: [place('unknown')] }, 'HealthUnknown'],
    [{ places: [place('unhealthy')] }, 'Unhealthy'],
    [{ state: 'failing', places: [place('unhealthy')] }, 'Unhealthy'],
  ];
  for (const [changes, reason] of waiting)
    for (const waitedMs of [0, FOR_EVER]) t.is(decide([service(changes)], waitedMs), `False ${reason}`);
});

test('what may never happen is waited for with a limit', (t) => {
  const hopeless: readonly (readonly [Partial<GateOwner>, string])[] = [
    [{ state: 'refused', places: [] }, 'NotRegistered'],
    [{ places: [] }, 'NotRegistered'],
    [{ places: [place('refused')] }, 'NotRegistered'],
    [{ state: 'failing', places: [] }, 'NotRegistered'],
    [{ state: 'failing', places: [place('missing')] }, 'NotRegistered'],
    [{ binding: 'overQuota', places: [] }, 'QuotaExceeded'],
  ];
  for (const [changes, reason] of hopeless) {
    t.is(decide([service(changes)], GIVE_UP_MS - 1), `False ${reason}`);
    t.is(decide([service(changes)], GIVE_UP_MS), `True ${reason}`);
    const other = service({ key: 'shop/api', places: [place('unhealthy')] });
    t.is(decide([service(changes), other], GIVE_UP_MS), 'False Unhealthy', 'another one is still waited for');
    t.is(decide([service(changes), service({ key: 'shop/api' })], GIVE_UP_MS), `True ${reason}`);
  }
});

test('the message names Service, listener and target', (t) => {
  const { message } = decideGate([service({ places: [place('unhealthy')] })], 0);
  t.is(message, 'the health check of the target 10.0.1.1:8080 of TCP/80 of the Service shop/web fails');
});
