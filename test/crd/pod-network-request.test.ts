import test from 'ava';
import { POD_ANNOTATION as NAME } from '../../crd/names.ts';
import { isStaticPod, readPodNetworkRequest } from '../../crd/pod-network-request.ts';

test('readPodNetworkRequest: wants nothing when nothing is annotated', (t) => {
  const { request, faults } = readPodNetworkRequest();
  t.deepEqual(faults, []);
  t.false(request.isStatic);
  t.is(request.mode, undefined);
  t.is(request.eip, undefined);
});

const EXPIRIES: readonly (readonly [string, number | undefined])[] = [
  ['5m', 300_000],
  ['1h30m', 5_400_000],
  ['0s', 0],
  ['300000ms', 300_000],
  ['4m59s', undefined],
  ['5 minutes', undefined],
  ['', undefined],
  ['-5m', undefined],
  ['99999999999999999999h', undefined],
];
for (const [text, ms] of EXPIRIES) {
  test(`readPodNetworkRequest: reads the expiry ${JSON.stringify(text)} as ${ms}`, (t) => {
    const { request, faults } = readPodNetworkRequest({ [NAME.claimExpiredDuration]: text });
    t.is(request.claimExpiredMs, ms);
    t.is(faults.length, ms === undefined ? 1 : 0);
  });
}

test('readPodNetworkRequest: keeps the address when the policy is a slip of the hand', (t) => {
  const { request, faults } = readPodNetworkRequest({ [NAME.deletePolicy]: 'never' });
  t.true(request.isStatic);
  t.deepEqual(
    faults.map(({ path }) => path),
    [NAME.deletePolicy],
  );
  t.true(isStaticPod({ [NAME.deletePolicy]: 'Never' }));
  t.false(isStaticPod({ [NAME.deletePolicy]: 'Immediate' }));
});

test('readPodNetworkRequest: tells every fault at once, by annotation', (t) => {
  const { request, faults } = readPodNetworkRequest({
    [NAME.nominatedVpcIp]: '10.0.0.256',
    [NAME.nominatedSubnets]: 'subnet-a,10.0.0.0/24',
    [NAME.securityGroups]: '',
    [NAME.eipAttributes]: '{"Bandwidth":"0","ISP":"ACME"}',
  });
  t.is(faults.length, 5);
  t.is(request.nominatedIp, undefined);
  t.is(request.nominatedSubnetIds, undefined);
  t.is(request.eip, undefined);
});

const UNSERVED: readonly (readonly [string, string])[] = [
  ['AddressType', '{"AddressType":"HighQualityEIP"}'],
  ['Tags', '{"Bandwidth":50,"Tags":[{"Key":"team","Value":"net"}]}'],
  ['AddressCount', '{"AddressCount":2}'],
  ['internetMaxBandwidthOut', '{"internetMaxBandwidthOut":5}'],
  ['__proto__', '{"__proto__":1}'],
];
for (const [key, text] of UNSERVED) {
  test(`readPodNetworkRequest: names the attribute ${key} of an EIP, which is not served, and asks for none`, (t) => {
    const { request, faults } = readPodNetworkRequest({ [NAME.eipAttributes]: text });
    t.is(request.eip, undefined);
    t.deepEqual(
      faults.map(({ path }) => path),
      [`${NAME.eipAttributes}.${key}`],
    );
  });
}

test('readPodNetworkRequest: takes attributes of an EIP that say what it is anyway', (t) => {
  const { faults } = readPodNetworkRequest({ [NAME.eipAttributes]: '{"AddressType":"EIP","AddressCount":1}' });
  t.deepEqual(faults, []);
});

test('readPodNetworkRequest: reads old and new keys of EIP attributes side by side', (t) => {
  const text =
    '{"Bandwidth":"50","ISP":"CMCC","InternetChargeType":"BANDWIDTH_PACKAGE","BandwidthPackageId":"bwp-1a2b"}';
  const { request, faults } = readPodNetworkRequest({ [NAME.eipAttributes]: text, [NAME.eipDeletePolicy]: 'Never' });
  t.deepEqual(faults, []);
  t.deepEqual(request.eip, {
    eipIds: [],
    bandwidthMbps: 50,
    isp: 'CMCC',
    chargeType: 'BANDWIDTH_PACKAGE',
    bandwidthPackageId: 'bwp-1a2b',
    isRetained: true,
  });
});

test('readPodNetworkRequest: wants no EIP that is paid for a month, and gone with its Pod in a minute', (t) => {
  const text = '{"InternetChargeType":"BANDWIDTH_PREPAID_BY_MONTH"}';
  const { request, faults } = readPodNetworkRequest({ [NAME.eipAttributes]: text });
  t.is(request.eip, undefined);
  t.deepEqual(
    faults.map(({ path }) => path),
    [`${NAME.eipAttributes}.InternetChargeType`],
  );
});

test('readPodNetworkRequest: takes the defaults for empty EIP attributes, and lists existing EIPs once each', (t) => {
  const { request } = readPodNetworkRequest({ [NAME.eipAttributes]: '', [NAME.eipIdList]: 'eip-a, eip-b,eip-a' });
  t.deepEqual(request.eip, {
    eipIds: ['eip-a', 'eip-b'],
    bandwidthMbps: 100,
    isp: 'BGP',
    chargeType: 'TRAFFIC_POSTPAID_BY_HOUR',
    isRetained: false,
  });
});

for (const [text, mode] of [
  ['tke-route-eni', 'route-eni'],
  ['tke-direct-eni', 'direct-eni'],
  ['tke-bridge', undefined],
  [' x/tke-route-eni@eth0 ', 'route-eni'],
  ['kube-system/tke-bridge, x/tke-route-eni@eth0', undefined],
  ['[{"name":"tke-direct-eni"}]', 'direct-eni'],
  ['[{"name":', undefined],
] as const) {
  test(`readPodNetworkRequest: joins a Pod of the networks ${text} by ${mode}`, (t) => {
    t.is(readPodNetworkRequest({ [NAME.networks]: text }).request.mode, mode);
  });
}

for (const [text, fault] of [
  ['tke-route-enni', 'expected tke-route-eni, got "tke-route-enni"'],
  ['tke-bridge, tke-route-eni', /^expected one network of .*; a list of several networks is not served, got "tke-br/],
  ['', undefined],
  ['sriov-net', undefined],
] as const) {
  test(`readPodNetworkRequest: networks ${JSON.stringify(text)}: ${fault ?? 'no fault'}`, (t) => {
    const { faults } = readPodNetworkRequest({ [NAME.networks]: text });
    const [first] = faults.map(({ expected, got }) => `expected ${expected}, got ${got}`);
    if (fault instanceof RegExp) t.regex(first ?? '', fault);
    else t.is(first, fault);
  });
}

test('readPodNetworkRequest: is done at once with a quarter of a megabyte in each annotation', (t) => {
  const size = 250_000;
  const texts = [`${'@'.repeat(size)}\nx`, '1m'.repeat(size / 2), `[${'['.repeat(size)}`, ','.repeat(size)];
  for (const text of texts) {
    const { faults } = readPodNetworkRequest(Object.fromEntries(Object.values(NAME).map((name) => [name, text])));
    t.true(faults.length > 0);
    t.true(faults.every(({ got }) => got.length < 200));
  }
});

test('readPodNetworkRequest: takes a bandwidth as a number or as digits, and nothing that only converts to one', (t) => {
  const read = (json: string) => readPodNetworkRequest({ [NAME.eipAttributes]: `{"InternetMaxBandwidthOut":${json}}` });
  for (const json of ['50', '"50"']) t.is(read(json).request.eip?.bandwidthMbps, 50, json);
  for (const json of ['[50]', 'true', '"0x32"', '" 50"', '"5e1"', '""', '50.5', '{}', '[]', '10001', '-1']) {
    const { request, faults } = read(json);
    t.is(request.eip, undefined, json);
    t.is(faults.length, 1, json);
  }
});
