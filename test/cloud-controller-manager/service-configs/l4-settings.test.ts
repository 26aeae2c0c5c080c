import test from 'ava';
import type { ListenerSettings } from '../../../cloud/listeners.ts';
import { configureListener } from '../../../cloud-controller-manager/service-configs/l4-settings.ts';

const TCP: ListenerSettings = {
  scheduler: 'WRR',
  sessionSeconds: 0,
  healthCheck: { isOn: true, kind: 'TCP', checkPort: 'target' },
};
const UDP: ListenerSettings = { scheduler: 'WRR', sessionSeconds: 0, healthCheck: { isOn: false } };
const plain = { protocol: 'TCP', port: 80, settings: TCP, needsItsCheck: false, hasAffinity: false } as const;

type Planned = Parameters<typeof configureListener>[0];
type Entry = NonNullable<NonNullable<Parameters<typeof configureListener>[1]>['l4Listeners']>[number];

/** Configures a listener by one entry for its own protocol and port. */
function configured(entry: Omit<Entry, 'protocol' | 'port'>, planned: Planned = plain) {
  const { protocol, port } = planned;
  return configureListener(planned, { l4Listeners: [{ protocol, port, ...entry }] });
}

test('configureListener: without an entry of the listener it is as the Service asks for', (t) => {
  t.deepEqual(configureListener(plain, undefined), { settings: TCP, unused: [] });
  const other = { l4Listeners: [{ protocol: 'UDP' as const, port: 80, scheduler: 'LEAST_CONN' as const }] };
  t.deepEqual(configureListener(plain, other), { settings: TCP, unused: [] });
});

test('configureListener: a setting that is left out is left as it is in the cloud', (t) => {
  t.deepEqual(configured({}), { settings: { healthCheck: TCP.healthCheck }, unused: [] });
  t.deepEqual(configured({ scheduler: 'LEAST_CONN' }).settings.scheduler, 'LEAST_CONN');
});

test('configureListener: the affinity of the Service counts where the configuration says nothing', (t) => {
  const sticky: Planned = { ...plain, settings: { ...TCP, sessionSeconds: 600 }, hasAffinity: true };
  t.is(configured({}, sticky).settings.sessionSeconds, 600);
  t.is(configured({ session: { enable: false } }, sticky).settings.sessionSeconds, 0);
  t.is(configured({ session: { enable: true } }, sticky).settings.sessionSeconds, 30);
  t.is(configured({ session: { enable: true, sessionExpireTime: 90 } }).settings.sessionSeconds, 90);
  t.is(configured({ session: { sessionExpireTime: 90 } }).settings.sessionSeconds, undefined);
});

test('configureListener: checks of TCP, HTTP and CUSTOM', (t) => {
  t.deepEqual(
    configured({ healthCheck: { intervalTime: 10, timeout: 3, healthNum: 4, unHealthNum: 5 } }).settings.healthCheck,
    {
      ...{ isOn: true, kind: 'TCP', checkPort: 'target', intervalSeconds: 10, timeoutSeconds: 3 },
      ...{ healthyThreshold: 4, unhealthyThreshold: 5 },
    },
  );
  t.deepEqual(
    configured({ healthCheck: { checkType: 'HTTP', httpCheckPath: '/up', httpCode: 2, checkPort: 99 } }).settings
      .healthCheck,
    {
      ...{ isOn: true, kind: 'HTTP', checkPort: 99 },
      http: { path: '/up', domain: 'health', method: 'HEAD', version: 'HTTP/1.1', codes: 2 },
    },
  );
  t.deepEqual(
    configured({ healthCheck: { checkType: 'CUSTOM', sendContext: 'a', recvContext: 'b' } }).settings.healthCheck,
    {
      ...{ isOn: true, kind: 'CUSTOM', checkPort: 'target', exchange: { format: 'TEXT', send: 'a', receive: 'b' } },
    },
  );
  t.deepEqual(configured({ healthCheck: { enable: false } }).settings.healthCheck, { isOn: false });
});

test('configureListener: a UDP listener is checked only where the configuration switches it on', (t) => {
  const udp: Planned = { ...plain, protocol: 'UDP', settings: UDP };
  t.deepEqual(configured({}, udp).settings.healthCheck, { isOn: false });
  t.deepEqual(configured({ healthCheck: { intervalTime: 9 } }, udp), {
    settings: { healthCheck: { isOn: false } },
    unused: ['healthCheck.intervalTime'],
  });
  t.deepEqual(configured({ healthCheck: { enable: true } }, udp).settings.healthCheck, {
    ...{ isOn: true, kind: 'PING', checkPort: 'target' },
  });
});

test('configureListener: the check of externalTrafficPolicy Local keeps what it asks, and gets the times', (t) => {
  const healthCheck = { isOn: true, kind: 'HTTP', checkPort: 31_000, http: { path: '/healthz' } };
  const local: Planned = { ...plain, settings: { ...TCP, healthCheck }, needsItsCheck: true };
  t.deepEqual(configured({ healthCheck: { checkType: 'TCP', checkPort: 80, intervalTime: 6 } }, local), {
    settings: { healthCheck: { ...healthCheck, intervalSeconds: 6 } },
    unused: ['healthCheck.checkType', 'healthCheck.checkPort'],
  });
});

test('configureListener: what has no effect is named', (t) => {
  t.deepEqual(configured({ proxyProtocol: { enable: true } }).unused, ['proxyProtocol']);
  t.deepEqual(configured({ healthCheck: { timeout: 7 } }).unused, ['healthCheck.timeout']);
  t.deepEqual(configured({ healthCheck: { httpCode: 2, sendContext: 'a' } }).unused, [
    'healthCheck.httpCode',
    'healthCheck.sendContext',
  ]);
});
