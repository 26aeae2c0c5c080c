import test from 'ava';
import type { ServedRow } from '../../../cloud-controller-manager/services/annotation-table.ts';
import { readAnnotations, WRITTEN_ANNOTATIONS } from '../../../cloud-controller-manager/services/read-annotations.ts';
import { REFUSED_ANNOTATIONS } from '../../../cloud-controller-manager/services/refused-annotations.ts';
import { SERVED_ANNOTATIONS, type SettingKey } from '../../../cloud-controller-manager/services/served-annotations.ts';

const SERVED = Object.entries<ServedRow<unknown>>(SERVED_ANNOTATIONS);
const REFUSED = REFUSED_ANNOTATIONS.filter(({ place }) => place === 'Service');

/** What no annotation takes. */
const NONSENSE = ['no such thing', ' ', 'TRUE', '-1', '{', '[]', '{"a":', 'sub net', '\u0000', 'ä'.repeat(300_000)];

/** A good value of each, and what it means. */
const GOOD: Readonly<Record<SettingKey, readonly (readonly [text: string, value: unknown])[]>> = {
  existedLbId: [['lb-a1b2c3d4', 'lb-a1b2c3d4']],
  subnetId: [['subnet-a1b2c3d4', 'subnet-a1b2c3d4']],
  chargeType: [['BANDWIDTH_PACKAGE', 'BANDWIDTH_PACKAGE']],
  bandwidthMbps: [
    ['1', 1],
    ['2048', 2_048],
  ],
  creation: [
    ['{"VipIsp":"CMCC","SlaType":"clb.c2.medium"}', { VipIsp: 'CMCC', SlaType: 'clb.c2.medium' }],
    ['{"AddressIPVersion":"IPV4","Vip":"10.0.0.9"}', { AddressIPVersion: 'IPV4', Vip: '10.0.0.9' }],
  ],
  balancerType: [['application', 'application']],
  backendSelector: [],
  securityGroups: [
    ['', []],
    ['sg-a1b2c3d4, sg-b1b2c3d4', ['sg-a1b2c3d4', 'sg-b1b2c3d4']],
  ],
  passToTarget: [
    ['true', true],
    ['false', false],
  ],
  mode: [['skip', 'skip']],
  preventLoopback: [['false', false]],
  sourceRanges: [
    ['10.0.0.0/8, 192.168.1.0/24', ['10.0.0.0/8', '192.168.1.0/24']],
    ['', []],
  ],
  allowAddressChange: [['true', true]],
  directAccess: [
    ['true', true],
    ['false', false],
  ],
  drainsLeaving: [['false', false]],
  drainsUnready: [['true', true]],
  deletionProtection: [
    ['true', true],
    ['false', false],
  ],
  retain: [['true', true]],
  pool: [['shared', 'shared']],
  poolPorts: [['allotted', 'allotted']],
  serviceConfig: [['web-settings', 'web-settings']],
  serviceConfigAuto: [['true', true]],
};

for (const [key, row] of SERVED) {
  for (const name of [row.name, ...(row.olderNames ?? [])]) {
    test(`${name}: nonsense is one clear error`, (t) => {
      for (const text of NONSENSE) {
        // A selector of the Nodes that have this label.
        if (key === 'backendSelector' && text === 'TRUE') continue;
        // Upstream's: blanks are no range.
        if (key === 'sourceRanges' && text === ' ') continue;
        const { settings, notices } = readAnnotations({ [name]: text }, {});
        t.deepEqual(settings, {}, text.slice(0, 20));
        const [notice] = notices;
        t.is(notices.length, 1, text.slice(0, 20));
        t.like(notice, { reason: 'AnnotationInvalid', blocks: true });
        t.true(notice?.message.startsWith(`annotation ${name} must be `), notice?.message);
        t.true(notice?.message.includes(`; ${row.cure}`), notice?.message);
        t.true((notice?.message.length ?? 0) < 700, 'a long value is cut');
      }
    });
    test(`${name}: a good value is obeyed`, (t) => {
      for (const [text, value] of GOOD[key as SettingKey]) {
        const read = readAnnotations({ [name]: text }, {});
        t.deepEqual(read, { settings: { [key]: value }, notices: [], areTargetsKnown: true });
      }
      t.true(GOOD[key as SettingKey].length > 0 || key === 'backendSelector');
    });
  }
  test(`${row.name}: is a label where the table says so`, (t) => {
    const [good] = GOOD[key as SettingKey];
    if (good === undefined || good[0] === '') {
      t.is(row.isLabelToo, undefined);
      return;
    }
    const { settings, notices } = readAnnotations({}, { [row.name]: good[0] });
    t.deepEqual(settings, row.isLabelToo ? { [key]: good[1] } : {});
    const isReported = row.isLabelToo === undefined && /^service\.(kubernetes|cloud|beta)/.test(row.name);
    t.is(notices.length, isReported ? 1 : 0, 'a label without effect is reported');
  });
}

for (const row of REFUSED) {
  test(`${row.name}: is refused with a reason and a way out`, (t) => {
    for (const text of ['true', ...NONSENSE]) {
      const { settings, notices } = readAnnotations({ [row.name]: text }, {});
      t.deepEqual(settings, {});
      t.is(notices.length, 1);
      t.like(notices[0], { reason: 'AnnotationRefused', blocks: row.blocks });
      t.true(notices[0]?.message.includes(`${row.why}; ${row.instead}`));
    }
    for (const text of row.neutral) t.deepEqual(readAnnotations({ [row.name]: text }, {}).notices, []);
  });
}

test('a selector of backends selects as Kubernetes does', (t) => {
  const name = SERVED_ANNOTATIONS.backendSelector.name;
  const selects = (text: string, labels: Readonly<Record<string, string>>): boolean | undefined =>
    readAnnotations({ [name]: text }, {}).settings.backendSelector?.matches(labels);
  t.is(selects('pool=edge', { pool: 'edge' }), true);
  t.is(selects('pool==edge', { pool: 'front' }), false);
  t.is(selects('pool!=edge', {}), true);
  t.is(selects('pool!=edge', { pool: 'edge' }), false);
  t.is(selects('pool in (edge, front),a.b/c', { pool: 'front', 'a.b/c': '' }), true);
  t.is(selects('pool in (edge, front),a.b/c', { pool: 'front' }), false);
  t.is(selects('pool notin (edge)', {}), true);
  t.is(selects('!pool', { pool: 'edge' }), false);
  t.is(selects('pool in edge', {}), undefined, 'malformed');
  t.is(selects('constructor', {}), false, 'a name of every object is no label');
});

test('two names of one annotation may not contradict each other', (t) => {
  const { name, olderNames } = SERVED_ANNOTATIONS.bandwidthMbps;
  const [older = ''] = olderNames ?? [];
  t.deepEqual(readAnnotations({ [name]: '10', [older]: '10' }, { [name]: '10' }).settings, { bandwidthMbps: 10 });
  const { settings, notices } = readAnnotations({ [name]: '10', [older]: '20' }, {});
  t.deepEqual(settings, {});
  t.is(notices.length, 1);
  t.regex(notices[0]?.message ?? '', /contradicts annotation .*; remove one of them$/);
});

test('a misspelt name is reported, and what others write is not', (t) => {
  const misspelt = 'service.kubernetes.io/qcloud-loadbalancer-internal-subnet-id';
  t.like(readAnnotations({ [misspelt]: 'subnet-a1b2c3d4' }, {}).notices, [
    { reason: 'AnnotationRefused', blocks: false },
  ]);
  const others = { 'service.kubernetes.io/headless': '', 'app.kubernetes.io/name': 'a', 'metallb.io/pool': 'b' };
  t.deepEqual(readAnnotations(others, others), { settings: {}, notices: [], areTargetsKnown: true });
  const written = Object.fromEntries(WRITTEN_ANNOTATIONS.map(({ name }) => [name, 'anything']));
  t.deepEqual(readAnnotations(written, {}).notices, [], 'its own ones are not read here');
});

test('targets stay as they are where an annotation about them cannot be read, and only there', (t) => {
  const areKnown = (key: SettingKey) => readAnnotations({ [SERVED_ANNOTATIONS[key].name]: '!' }, {}).areTargetsKnown;
  for (const key of ['directAccess', 'backendSelector', 'drainsLeaving', 'drainsUnready', 'mode'] as const)
    t.false(areKnown(key), key);
  for (const key of ['securityGroups', 'subnetId', 'creation'] as const) t.true(areKnown(key), key);
});

test('each name stands in the table once', (t) => {
  const names = [
    ...SERVED.flatMap(([, { name, olderNames = [] }]) => [name, ...olderNames]),
    ...REFUSED_ANNOTATIONS.map(({ place, name }) => (place === 'Service' ? name : `${place} ${name}`)),
    ...WRITTEN_ANNOTATIONS.map(({ name }) => name),
  ];
  t.is(new Set(names).size, names.length);
});

test('of many unknown names ten are shown, and an object is read once', (t) => {
  const names = Array.from({ length: 70_000 }, (_, at) => `service.cloud.tencent.com/${at}`);
  const annotations = Object.fromEntries(names.map((name) => [name, '']));
  const labels = {};
  const read = readAnnotations(annotations, labels);
  t.is(read.notices.length, 10);
  t.regex(read.notices[9]?.message ?? '', /, nor have 69990 others;/);
  t.is(readAnnotations(annotations, labels), read);
  t.not(readAnnotations(annotations, { mode: 'skip' }), read);
});
