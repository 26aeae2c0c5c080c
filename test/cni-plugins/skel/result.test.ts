import test from 'ava';
import type { Attachment } from '../../../agent/api/messages.ts';
import { decodeConf } from '../../../cni-plugins/skel/conf.ts';
import { comparePrevResult, makeOldResult, makeResult } from '../../../cni-plugins/skel/result.ts';
import { SUPPORTED_VERSIONS } from '../../../cni-plugins/skel/version.ts';

const ATTACHMENT: Attachment = {
  interfaces: [
    { name: 'eni0123456789a', mac: '02:00:00:00:00:01', mtu: 1500, sandbox: '' },
    { name: 'eth0', mac: '02:00:00:00:00:02', mtu: 1500, sandbox: '/run/netns/x' },
  ],
  ips: [
    { address: '10.0.0.5/32', gateway: '169.254.1.1', interfaceIndex: 1, eniId: 'eni-1' },
    { address: 'fd00::5/128', gateway: 'fe80::1', interfaceIndex: 1, eniId: 'eni-1' },
  ],
  routes: [
    { dst: '0.0.0.0/0', gw: '169.254.1.1' },
    { dst: '::/0', gw: '' },
  ],
};

for (const cniVersion of SUPPORTED_VERSIONS.filter((version) => version !== '0.2.0')) {
  test(`makeResult: prints an attachment in version ${cniVersion}`, (t) => {
    const isOld = cniVersion.startsWith('0.');
    const mtu = cniVersion === '1.1.0' ? { mtu: 1500 } : {};
    t.deepEqual<unknown, unknown>(makeResult({ cniVersion }, ATTACHMENT, 'main'), {
      cniVersion,
      interfaces: [
        { name: 'eni0123456789a', mac: '02:00:00:00:00:01', ...mtu },
        { name: 'eth0', mac: '02:00:00:00:00:02', ...mtu, sandbox: '/run/netns/x' },
      ],
      ips: [
        { ...(isOld ? { version: '4' } : {}), interface: 1, address: '10.0.0.5/32', gateway: '169.254.1.1' },
        { ...(isOld ? { version: '6' } : {}), interface: 1, address: 'fd00::5/128', gateway: 'fe80::1' },
      ],
      routes: [{ dst: '0.0.0.0/0', gw: '169.254.1.1' }, { dst: '::/0' }],
    });
  });
}

test('makeResult: prints addresses and routes alone for an IPAM plugin', (t) => {
  t.deepEqual<unknown, unknown>(makeResult({ cniVersion: '1.0.0' }, ATTACHMENT, 'ipam'), {
    cniVersion: '1.0.0',
    ips: [
      { address: '10.0.0.5/32', gateway: '169.254.1.1' },
      { address: 'fd00::5/128', gateway: 'fe80::1' },
    ],
    routes: [{ dst: '0.0.0.0/0', gw: '169.254.1.1' }, { dst: '::/0' }],
  });
});

test('makeOldResult: has one address of each family with its routes, and no interfaces', (t) => {
  const ips = [...ATTACHMENT.ips, { address: '10.0.0.6/32', gateway: '', interfaceIndex: 1, eniId: 'eni-1' }];
  t.deepEqual<unknown, unknown>(makeOldResult({ dns: { domain: 'x' } }, { ...ATTACHMENT, ips }), {
    cniVersion: '0.2.0',
    ip4: { ip: '10.0.0.5/32', gateway: '169.254.1.1', routes: [{ dst: '0.0.0.0/0', gw: '169.254.1.1' }] },
    ip6: { ip: 'fd00::5/128', gateway: 'fe80::1', routes: [{ dst: '::/0' }] },
    dns: { domain: 'x' },
  });
  t.deepEqual<unknown, unknown>(makeOldResult({}, { ...ATTACHMENT, ips: [] }), { cniVersion: '0.2.0' });
});

test('makeResult: prints the uplink of an IPAM plugin where the main plugin asked for it', (t) => {
  const uplink = { name: 'eth1', mac: '02:00:00:00:00:07', mtu: 0, sandbox: '' };
  const result = makeResult({ cniVersion: '1.1.0', uplink: true }, { ...ATTACHMENT, interfaces: [uplink] }, 'ipam');
  t.deepEqual(result.interfaces, [{ name: 'eth1', mac: '02:00:00:00:00:07' }]);
});

const CHAINED = decodeConf(
  JSON.stringify({
    cniVersion: '1.0.0',
    name: 'net',
    dns: { nameservers: ['10.0.0.2'] },
    prevResult: {
      cniVersion: '1.0.0',
      interfaces: [{ name: 'net1', sandbox: '/run/netns/x' }],
      ips: [{ address: '192.168.0.2/24', interface: 0 }],
      routes: [{ dst: '192.168.0.0/16' }],
      dns: { nameservers: ['192.168.0.1'] },
    },
  }),
  'tke-route-eni',
  'ADD',
);

test('makeResult: appends to what a plugin before us made, and shifts our interface indexes', (t) => {
  const result = makeResult(CHAINED, ATTACHMENT, 'main');
  t.deepEqual(
    result.interfaces?.map(({ name }) => name),
    ['net1', 'eni0123456789a', 'eth0'],
  );
  t.deepEqual(
    result.ips.map(({ address, interface: index }) => [address, index]),
    [
      ['192.168.0.2/24', 0],
      ['10.0.0.5/32', 2],
      ['fd00::5/128', 2],
    ],
  );
  t.is(result.routes.length, 3);
  t.deepEqual(result.dns, { nameservers: ['10.0.0.2'] });
});

test('makeResult: keeps the dns of the plugin before us when the conf has none', (t) => {
  const { dns: _dns, ...conf } = CHAINED;
  t.deepEqual(makeResult(conf, ATTACHMENT, 'main').dns, { nameservers: ['192.168.0.1'] });
});

function prevResultOf(result: unknown) {
  const conf = { cniVersion: '1.0.0', name: 'net', prevResult: result };
  const { prevResult } = decodeConf(JSON.stringify(conf), 'tke-route-eni', 'CHECK');
  if (prevResult === undefined) throw new Error('no prevResult');
  return prevResult;
}

test('comparePrevResult: finds nothing in the result of ADD, even when plugins behind us added to it', (t) => {
  const result = makeResult({ cniVersion: '1.0.0' }, ATTACHMENT, 'main');
  t.deepEqual(comparePrevResult(prevResultOf(result), ATTACHMENT, 'eth0', 'main'), []);
  const longer = { ...result, ips: [...result.ips, { address: '10.9.9.9/32' }] };
  t.deepEqual(comparePrevResult(prevResultOf(longer), ATTACHMENT, 'eth0', 'main'), []);
  t.deepEqual(comparePrevResult(prevResultOf(result), undefined, 'eth0', 'main'), []);
});

test('comparePrevResult: lists every difference', (t) => {
  const prevResult = prevResultOf({
    interfaces: [{ name: 'eth0', mac: '02:00:00:00:00:99', sandbox: '/x' }],
    ips: [{ address: '10.0.0.6/32' }],
  });
  t.deepEqual(comparePrevResult(prevResult, ATTACHMENT, 'eth0', 'main'), [
    'prevResult: the agent holds 10.0.0.5/32, prevResult has 10.0.0.6/32',
    'prevResult: the agent holds fd00::5/128, prevResult has 10.0.0.6/32',
    'prevResult: eth0 has MAC 02:00:00:00:00:99, the agent holds 02:00:00:00:00:02',
  ]);
  t.deepEqual(comparePrevResult(prevResultOf({}), undefined, 'eth0', 'main'), [
    'prevResult: no address',
    'prevResult: no interface eth0 in a sandbox',
  ]);
});
