import { IDS_PER_CALL } from '../batches.ts';
import type { Subnet, SubnetPort } from '../cloud.ts';
import type { Caller } from './caller.ts';
import { decodeIpUsers, decodeSubnetPage } from './decode/others.ts';
import type { IdBatcher } from './id-batcher.ts';
import { readPages } from './paged.ts';
import type { SharedSweep } from './shared-sweep.ts';

/** Creates the subnet part of the port. */
export function createSubnetPort(
  call: Caller,
  batcher: IdBatcher<Subnet>,
  sweeps: SharedSweep<readonly Subnet[]>,
): SubnetPort {
  return {
    describe: (subnetIds, context) => batcher.get(subnetIds, context),
    usersOf: async (vpcId, ips, context) => {
      const request = { VpcId: vpcId, IpAddresses: [...ips], Limit: IDS_PER_CALL };
      return decodeIpUsers(await call('DescribeUsedIpAddress', request, context));
    },
    sweep: (vpcId, context) =>
      sweeps.join(vpcId, context, async (shared) => {
        const Filters = [{ Name: 'vpc-id', Values: [vpcId] }];
        const readPage = async (offset: number) => {
          // Only this API takes its numbers as texts.
          const request = { Filters, Offset: String(offset), Limit: String(IDS_PER_CALL) };
          return decodeSubnetPage(await call('DescribeSubnets', request, shared));
        };
        return (await readPages(readPage, (subnet) => subnet.subnetId)).objects;
      }),
  };
}
