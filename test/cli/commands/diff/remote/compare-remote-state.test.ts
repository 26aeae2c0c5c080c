import test from 'ava';
import { compareRemoteState } from '../../../../../cli/commands/diff/remote/compare-remote-state.ts';
import { remoteStateOfCloud, remoteStateOfNec } from '../../../../../cli/commands/diff/remote/read-remote-state.ts';
import type { RemoteEni, RemoteState } from '../../../../../cli/commands/diff/remote/remote-state.ts';
import type { Eni } from '../../../../../cloud/cloud.ts';
import { namesOf } from '../../../../../inspection/judge/compare-node.ts';
import { ENIS, healthySight } from '../../../../inspection/judge/sight-fixture.ts';

const SIGHT = healthySight();
const NAMES = namesOf(SIGHT);
const tell = (remote: RemoteState): readonly (readonly [string, string])[] =>
  compareRemoteState(remote, SIGHT.agent, SIGHT.desired, NAMES).map(({ id, what }) => [id, what]);

const LEASED: Readonly<Record<string, string>> = { 'eni-5': '10.0.5.10', 'eni-6': '10.0.6.20' };

const AGREED: RemoteState = {
  source: 'nec',
  title: 'NodeENIConfig n1',
  isComplete: true,
  enis: ENIS.map(({ eniId, mac, addresses }) => {
    const ip = LEASED[eniId] ?? '';
    const assignmentId = `a-${ip.split('.').slice(2).join('-')}`;
    return {
      eniId,
      mac,
      isAttached: true,
      state: 'Attached',
      primaries: addresses.map((address) => address.ip),
      addresses: [{ ip, assignmentId, isAssigned: true, state: 'Assigned' }],
    };
  }),
};

/** The remote state, with its first ENI changed. */
const withFirst = (change: Partial<RemoteEni>): RemoteState => ({
  ...AGREED,
  enis: AGREED.enis.map((eni, index) => (index === 0 ? { ...eni, ...change } : eni)),
});

test('compareRemoteState: finds nothing where both say the same', (t) => {
  t.deepEqual(tell(AGREED), []);
});

const CASES: readonly (readonly [string, RemoteState, string, RegExp])[] = [
  [
    'an ENI that is not there',
    { ...AGREED, enis: AGREED.enis.slice(1) },
    'eni-not-attached',
    /does not have ENI eni-5/,
  ],
  ['an ENI on its way', withFirst({ isAttached: false, state: 'Detaching' }), 'eni-not-attached', /as Detaching/],
  ['an ENI of another MAC', withFirst({ mac: '52:54:00:00:00:99' }), 'eni-not-attached', /has the MAC/],
  ['an ENI of another primary address', withFirst({ primaries: ['10.0.5.99'] }), 'eni-not-attached', /as primary/],
  [
    'an address that is gone',
    withFirst({ addresses: [] }),
    'address-not-assigned',
    /does not have 10\.0\.5\.10 of Pod/,
  ],
  [
    'an address that is taken back',
    withFirst({ addresses: [{ ip: '10.0.5.10', isAssigned: false, state: 'Releasing' }] }),
    'address-not-assigned',
    /as Releasing/,
  ],
  [
    'an address that was given again',
    withFirst({ addresses: [{ ip: '10.0.5.10', assignmentId: 'later', isAssigned: true, state: 'Assigned' }] }),
    'address-not-assigned',
    /given again/,
  ],
];

for (const [what, remote, id, text] of CASES) {
  test(`compareRemoteState: names ${what}`, (t) => {
    const told = tell(remote);
    const [first] = told;
    t.is(first?.[0], id, JSON.stringify(told));
    t.regex(first?.[1] ?? '', text);
  });
}

test('compareRemoteState: does not miss ENIs of a damaged object', (t) => {
  t.deepEqual(tell({ ...AGREED, enis: [], isComplete: false }), []);
});

test('compareRemoteState: tells of an ENI that the agent does not use, and of an old story', (t) => {
  const [some] = AGREED.enis;
  if (some === undefined) throw new Error('there are ENIs');
  const more = { ...AGREED, enis: [...AGREED.enis, { ...some, eniId: 'eni-new' }] };
  t.deepEqual(
    tell(more).map(([id]) => id),
    ['supply-behind'],
  );
  const supply = { nodeName: 'n1', epoch: 9, warm: { min: 1, max: 1 }, enis: [] };
  const agent = { ...SIGHT.agent, journal: { ...SIGHT.agent.journal, supply } };
  const old = compareRemoteState({ ...AGREED, epoch: 8 }, agent, SIGHT.desired, NAMES);
  t.deepEqual(
    old.map(({ id }) => id),
    ['supply-behind'],
  );
  t.deepEqual(compareRemoteState({ ...AGREED, epoch: 9 }, agent, SIGHT.desired, NAMES), []);
});

test('remoteStateOfNec: leaves out ENIs that belong to one Pod, reads an empty object as no ENI', (t) => {
  const metadata = { name: 'n1' };
  const type = { apiVersion: 'networking.tke.cloud.tencent.com/v1', kind: 'NodeENIConfig' } as const;
  t.deepEqual(remoteStateOfNec({ ...type, metadata }, false).enis, []);
  const info = { eniID: 'eni-5', mac: '52:54:00:00:00:05', state: 'Attached' } as const;
  const eniInfos = [info, { ...info, eniID: 'eni-own', mode: 'direct-eni' as const }];
  const remote = remoteStateOfNec({ ...type, metadata, status: { supplyEpoch: 3, eniInfos } }, true);
  t.deepEqual(
    remote.enis.map(({ eniId }) => eniId),
    ['eni-5'],
  );
  t.is(remote.epoch, 3);
  t.false(remote.isComplete);
});

test('remoteStateOfCloud: parts an ENI’s own addresses from those for Pods', (t) => {
  const ip = (text: string, isPrimary: boolean) => ({ ip: text, isPrimary, state: 'AVAILABLE' as const });
  const eni = {
    ...{ eniId: 'eni-5', name: '', description: '', mac: '52:54:00:00:00:05', vpcId: 'v', subnetId: 's', zone: 'z' },
    ...{ isPrimary: false, state: 'AVAILABLE', securityGroupIds: [], tags: {}, createdAtMs: 0 },
    attachment: { instanceId: 'ins-1', deviceIndex: 1 },
    ips: [ip('10.0.5.5', true), ip('10.0.5.10', false)],
    ipv6s: [ip('fd00::10', false)],
  } as const satisfies Eni;
  const [there] = remoteStateOfCloud([eni]).enis;
  t.deepEqual(there?.primaries, ['10.0.5.5']);
  t.deepEqual(
    there?.addresses.map((address) => address.ip),
    ['10.0.5.10', 'fd00::10'],
  );
  t.true(there?.isAttached);
  const { attachment: _attachment, ...loose } = eni;
  t.false(remoteStateOfCloud([loose]).enis[0]?.isAttached);
});
