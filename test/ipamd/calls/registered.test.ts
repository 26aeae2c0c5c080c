import test from 'ava';
import { decodeNec } from '../../../ipamd/cache/decode-nec.ts';
import {
  findRegistrations,
  NECS_BY_REGISTERED_IP,
  RegisteredIps,
  readRegisteredIps,
} from '../../../ipamd/cache/registered-ips.ts';

const NODE = 'node-a';

function entryOf(registeredIPs: unknown) {
  return decodeNec({
    apiVersion: 'networking.tke.cloud.tencent.com/v1',
    kind: 'NodeENIConfig',
    metadata: { name: NODE },
    status: {
      eniInfos: [
        {
          ...{ eniID: 'eni-1', mac: '20:90:6f:00:00:01', state: 'Attached', primaryIP: '10.0.1.2' },
          ...{ gateway: '10.0.1.1', subnetCIDR: '10.0.1.0/24' },
          addresses: ['10.0.1.3', '10.0.1.4'].map((ip) => ({ ip, assignmentID: `a-${ip}`, state: 'Assigned' })),
        },
      ],
    },
    loadBalancers: { registeredIPs },
  });
}

test('findRegistrations: the wait begins with the end of the Pod, ends after the limit, and is looked at then', (t) => {
  let nowMs = 0;
  const entry = entryOf(['10.0.1.3']);
  const due: number[] = [];
  const registered = new RegisteredIps({
    necs: {
      byIndex: (name, ip) => (name === NECS_BY_REGISTERED_IP && readRegisteredIps(entry).includes(ip) ? [entry] : []),
    },
    clock: { monotonicMs: () => nowMs },
    limitMs: 1_000,
    onWait: (_name, afterMs) => void due.push(afterMs),
  });
  const heldBy = (inUse: boolean) => findRegistrations(registered, entry, () => inUse);
  t.deepEqual([...heldBy(true).held], ['10.0.1.3']);
  nowMs = 5_000;
  registered.noteFreed(NODE, ['10.0.1.3', '10.0.1.4']);
  nowMs = 5_999;
  t.deepEqual(heldBy(false), { held: new Set(['10.0.1.3']), overdue: [] });
  nowMs = 6_000;
  t.deepEqual(heldBy(false), { held: new Set(), overdue: ['10.0.1.3'] });
  t.deepEqual(due, [1_000, 1]);
  t.false(registered.isHeld('10.0.1.3'));
  t.false(registered.isHeld('10.0.1.4'));
  heldBy(true);
  t.true(registered.isHeld('10.0.1.3'), 'another Pod had it');
});

test('RegisteredIps: the list of a node keeps no address of another one', (t) => {
  const own = entryOf([]);
  const other = { name: 'other', decoded: { loadBalancers: { registeredIPs: ['10.0.1.3'] } } } as never;
  const registered = new RegisteredIps({
    necs: { byIndex: (_name, ip) => (ip === '10.0.1.3' ? [other] : []) },
    clock: { monotonicMs: () => 0 },
    limitMs: 1_000,
    onWait: () => undefined,
  });
  t.deepEqual(
    findRegistrations(registered, own, () => false),
    { held: new Set(), overdue: [] },
  );
  t.false(registered.isHeld('10.0.1.3'));
});

test('decodeNec: of a malformed list of targets the addresses count that can be read', (t) => {
  t.deepEqual(readRegisteredIps(entryOf(['10.0.1.3', 7, 'nonsense'])), ['10.0.1.3']);
  t.deepEqual(readRegisteredIps(entryOf('all')), []);
});
