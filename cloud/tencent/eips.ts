import { IDS_PER_CALL } from '../batches.ts';
import type { CallContext, CloudTask, Eip, EipGoal, EipPort, EipSpec } from '../cloud.ts';
import type { Caller } from './caller.ts';
import { decodeAllocated, decodeEipPage, decodeTaskId } from './decode/others.ts';
import { tokenOf } from './enis.ts';
import type { IdBatcher } from './id-batcher.ts';
import { readPages } from './paged.ts';

/** Creates the EIP part of the port. */
export function createEipPort(call: Caller, batcher: IdBatcher<Eip>): EipPort {
  const filtered = async (name: string, value: string, context: CallContext): Promise<readonly Eip[]> => {
    const Filters = [{ Name: name, Values: [value] }];
    const readPage = async (Offset: number) =>
      decodeEipPage(await call('DescribeAddresses', { Filters, Offset, Limit: IDS_PER_CALL }, context));
    return (await readPages(readPage, (eip) => eip.eipId)).objects;
  };
  return {
    allocate: async (spec, context) => {
      const { eipIds, taskId } = decodeAllocated(await call('AllocateAddresses', allocateRequest(spec), context));
      return { eipIds, task: { taskId, action: 'AllocateAddresses', goal: { kind: 'eip-unbound', eipIds } } };
    },
    associate: async (eipId, eniId, privateIp, context) => {
      const request = { AddressId: eipId, NetworkInterfaceId: eniId, PrivateIpAddress: privateIp };
      return eipTask(await call('AssociateAddress', request, context), 'AssociateAddress', 'eip-bound', eipId);
    },
    disassociate: async (eipId, context) =>
      eipTask(
        await call('DisassociateAddress', { AddressId: eipId }, context),
        'DisassociateAddress',
        'eip-unbound',
        eipId,
      ),
    release: async (eipId, context) =>
      eipTask(
        await call('ReleaseAddresses', { AddressIds: [eipId] }, context),
        'ReleaseAddresses',
        'eip-released',
        eipId,
      ),
    describe: async (query, context) => {
      if ('eipIds' in query) return await batcher.get(query.eipIds, context);
      if ('eniId' in query) return await filtered('network-interface-id', query.eniId, context);
      if ('tag' in query) return await filtered(`tag:${query.tag.key}`, query.tag.value, context);
      return await filtered('address-name', query.name, context);
    },
  };
}

function eipTask(answer: unknown, action: string, kind: EipGoal['kind'], eipId: string): CloudTask {
  return { taskId: decodeTaskId(answer, action), action, goal: { kind, eipIds: [eipId] } };
}

function allocateRequest(spec: EipSpec) {
  const { name, isp, chargeType, bandwidthMbps, bandwidthPackageId, tags } = spec;
  return {
    AddressCount: spec.count,
    AddressType: 'EIP',
    ...(name === undefined ? {} : { AddressName: name }),
    ...(isp === undefined ? {} : { InternetServiceProvider: isp }),
    ...(chargeType === undefined ? {} : { InternetChargeType: chargeType }),
    ...(bandwidthMbps === undefined ? {} : { InternetMaxBandwidthOut: bandwidthMbps }),
    ...(bandwidthPackageId === undefined ? {} : { BandwidthPackageId: bandwidthPackageId }),
    ...(tags === undefined ? {} : { Tags: Object.entries(tags).map(([Key, Value]) => ({ Key, Value })) }),
    ...tokenOf(spec.clientToken),
  };
}
