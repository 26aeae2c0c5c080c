import test from 'ava';
import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const CONTEXT = { priority: 'warm', owner: 'routes', signal: new AbortController().signal } as const;
const VPC = 'vpc-00000001';

test('the route tables of a VPC are read to the last page, with what is disabled', async (t) => {
  const clock = new VirtualClock();
  const host = new CloudHost({ vpcId: VPC, subnets: [] }, clock, { seed: 5, latencyMs: [20, 60] });
  const cloud = createTencentCloud({ api: createInProcessApi(host), clock, random: () => 0.5 });
  const book = host.model.state.routeTables;
  const names = Array.from({ length: 120 }, (_, index) => `rtb-${String(index).padStart(8, '0')}`);
  for (const name of names) {
    book.addTable(name, VPC);
    book.add(name, [
      { cidr: '172.16.1.0/24', gatewayIp: '10.0.0.1' },
      { cidr: '172.16.2.0/24', gatewayIp: '10.0.0.2', isDisabled: true },
    ]);
  }
  book.addTable('rtb-of-another', 'vpc-00000002');
  const all = (await clock.run(cloud.routes.table.listAll?.(VPC, CONTEXT) ?? Promise.reject())) ?? new Map();
  t.deepEqual([...all.keys()].toSorted(), names);
  for (const routes of all.values())
    t.deepEqual(
      routes.map(({ isDisabled = false }) => isDisabled),
      [false, true],
    );
  t.is(host.counts()['DescribeRouteTables'], 2);
});
