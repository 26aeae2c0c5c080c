import test from 'ava';
import { FOREIGN_SUBNET, GOOD, inScene, OTHER_VPC, PODS_SUBNET, VPC, ZONE4_SUBNET } from './wrong-scene.ts';

const KEY = 'TKE_ENI_IPAMD_SUBNET_ID';
const NAME = 'tke-eni-ipamd';
const LABEL = 'tke.cloud.tencent.com/route-eni-subnet-ids';

/** What people write, and what has to be said of it. */
const WRONG: readonly (readonly [string, Readonly<Record<string, string>> | undefined, string, RegExp])[] = [
  [
    'ids that are none',
    { [KEY]: 'subnet_bad,subnet-x' },
    'ConfigInvalid',
    /data\.TKE_ENI_IPAMD_SUBNET_ID: .*subnet_bad/,
  ],
  ['an empty list', { [KEY]: '' }, 'ConfigInvalid', /data\.TKE_ENI_IPAMD_SUBNET_ID: expected at least one subnet/],
  ['no key at all', { other: 'thing' }, 'ConfigInvalid', /data\.TKE_ENI_IPAMD_SUBNET_ID: .*got nothing/],
  ['no ConfigMap', undefined, 'ConfigInvalid', /ConfigMap kube-system\/tke-eni-ipamd: .*no such ConfigMap/],
  [
    'a VPC id that is none',
    { [KEY]: PODS_SUBNET, TKE_ENI_IPAMD_VPC_ID: 'my vpc' },
    'ConfigInvalid',
    /TKE_ENI_IPAMD_VPC_ID: .*my vpc/,
  ],
  [
    'another VPC',
    { [KEY]: PODS_SUBNET, TKE_ENI_IPAMD_VPC_ID: OTHER_VPC },
    'ConfigInvalid',
    new RegExp(`TKE_ENI_IPAMD_VPC_ID: expected ${VPC}, which ${PODS_SUBNET} is in, got ${OTHER_VPC}`),
  ],
  [
    'a subnet of another VPC',
    { ...GOOD, [KEY]: `${PODS_SUBNET}:${FOREIGN_SUBNET}` },
    'SubnetUnknown',
    new RegExp(`${VPC} has no ${FOREIGN_SUBNET}`),
  ],
  [
    'a subnet that is not',
    { ...GOOD, [KEY]: `${PODS_SUBNET}:subnet-nowhere1` },
    'SubnetUnknown',
    /has no subnet-nowhere1/,
  ],
];

for (const [what, data, reason, says] of WRONG) {
  test(`ConfigMap with ${what}: is named, and the last good one stays in force`, async (t) => {
    await inScene(GOOD, async (scene) => {
      await scene.join('n1');
      await scene.awaitWarm('n1');
      await scene.configure(data);
      await scene.assertNamed(t, { reason, says, name: NAME, on: 'n1' });
      await scene.assertOthersGoOn(t);
      await scene.configure(GOOD);
      await scene.assertOver(t, 'n1');
    });
  });

  test(`ConfigMap with ${what}: is named when it is the first, and is over when it is mended`, async (t) => {
    await inScene(data, async (scene) => {
      await scene.join('n1');
      await scene.assertNamed(t, { reason, says, name: NAME, on: 'n1' });
      // Nodes whose subnets are named for them need no ConfigMap.
      await scene.assertOthersGoOn(t, { labels: { [LABEL]: PODS_SUBNET } });
      await scene.configure(GOOD);
      await scene.awaitWarm('n1');
      await scene.assertOver(t, 'n1');
    });
  });
}

test('ConfigMap with no subnet that the cloud has, the first one: the message says that nothing is left, and what to set', async (t) => {
  await inScene({ ...GOOD, [KEY]: 'subnet-nowhere1:subnet-nowhere2' }, async (scene) => {
    await scene.join('n1');
    const says = new RegExp(`no subnet is left, .*set data\\.${KEY} to ids of subnets of ${VPC}`);
    await scene.assertNamed(t, { reason: 'SubnetUnknown', says, name: NAME, on: 'n1' });
    await scene.configure(GOOD);
    await scene.awaitWarm('n1');
    await scene.assertOver(t, 'n1');
  });
});

/** In the words of the product, with its code. */
const NO_SUBNET =
  /no subnet .*ap-guangzhou-3: DashboardError,Code : -1100000 , Msg : Network scale error\[IP for pods in Zone ap-guangzhou-3 is not enough to scale out 1 nodes\.\]/;

test('ConfigMap with subnets of another zone alone: the nodes that have none say so', async (t) => {
  await inScene({ ...GOOD, [KEY]: ZONE4_SUBNET }, async (scene) => {
    await scene.join('n1');
    await scene.assertNamed(t, { reason: 'NoSubnetInZone', says: NO_SUBNET, name: 'n1', on: 'n1' });
    await scene.assertOthersGoOn(t, { labels: { [LABEL]: PODS_SUBNET } });
    await scene.configure(GOOD);
    await scene.awaitWarm('n1');
    await scene.assertOver(t, 'n1');
  });
});
