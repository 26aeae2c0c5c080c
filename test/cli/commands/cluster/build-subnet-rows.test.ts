import test from 'ava';
import { buildSubnetRows } from '../../../../cli/commands/cluster/build-subnet-rows.ts';
import type { SubnetSupplies } from '../../../../cli/commands/cluster/read-published.ts';
import type { SubnetSupply } from '../../../../crd/subnet-supply.ts';
import { factsOf, necObject } from './sample.ts';

const IPS = ['10.0.1.10', '10.0.1.11'];
/** As ipamd counted one ENI with its two addresses. */
const SUPPLY = { zone: 'ap-guangzhou-3', cidr: '10.0.1.0/24', free: 100, total: 253, held: 3, common: true } as const;
const factsWith = (ips: readonly string[]) => factsOf([necObject(1, ips)]);
const suppliesOf = (bySubnet: Readonly<Record<string, SubnetSupply>>): SubnetSupplies => ({
  bySubnet: new Map(Object.entries(bySubnet)),
  malformed: [],
});

test('buildSubnetRows: what ipamd publishes is there without the cloud, minus what nodes took since', (t) => {
  const supplies = suppliesOf({ 'subnet-1': SUPPLY });
  const [row] = buildSubnetRows(factsWith([...IPS, '10.0.1.12']), undefined, supplies);
  t.like(row, { subnetId: 'subnet-1', zone: 'ap-guangzhou-3', total: 253, used: 154, free: 99, ours: 4, enis: 1 });
  t.is(buildSubnetRows(factsWith(IPS))[0]?.free, undefined);
});

test('buildSubnetRows: a subnet without an ENI has a row; one that the cloud reported as full has nothing free', (t) => {
  const other = { ...SUPPLY, cidr: '10.0.9.0/24', held: 0 };
  const rows = buildSubnetRows(factsWith(IPS), undefined, suppliesOf({ other, full: { ...other, blocked: true } }));
  const shown = rows.map(({ subnetId, free, ours, nodes, forecast }) => [subnetId, free, ours, nodes, forecast.kind]);
  t.deepEqual(shown.toSorted(), [
    ['full', 0, 0, [], 'exhausted'],
    ['other', 100, 0, [], 'not-growing'],
    ['subnet-1', undefined, 3, ['n1'], 'not-growing'],
  ]);
});
