import test from 'ava';
import { exclusiveDemand } from '../../../agent/exclusive/decide-exclusive-publication.ts';
import { applyExclusiveSupply } from '../../../agent/exclusive/exclusive-pool.ts';
import { exclusiveSupplyOf } from '../../../agent/supply/supply-of-config.ts';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';

const CLAIM = { namespace: 'ns', name: 'web-0' };

function supplyOf(status: NodeEniConfigStatus) {
  return exclusiveSupplyOf(
    {
      apiVersion: 'networking.tke.cloud.tencent.com/v1',
      kind: 'NodeENIConfig',
      metadata: { name: 'n' },
      spec: { maxDirectENI: 2 },
      status,
    },
    {},
  );
}

function eni(eniID: string, last: number, claim?: typeof CLAIM): NonNullable<NodeEniConfigStatus['eniInfos']>[number] {
  return {
    ...{ eniID, mac: `20:90:6f:00:00:0${last}`, mode: 'direct-eni', state: 'Attached', assignmentID: `a-${last}` },
    ...{ primaryIP: `10.0.0.${last}`, gateway: '10.0.0.254', subnetCIDR: '10.0.0.0/24', subnetID: 'subnet-a' },
    ...(claim === undefined ? {} : { claim }),
  };
}

for (const { title, status, awaited, surplus, desired, limit } of [
  {
    title: 'offers what Pods of claims wait for the place of',
    status: { staticDirectENIs: 2, eniInfos: [eni('eni-1', 1)] },
    ...{ awaited: 2, surplus: ['eni-1'], desired: 0, limit: 2 },
  },
  {
    title: 'counts no claim twice whose ENI is there',
    status: { staticDirectENIs: 1, eniInfos: [eni('eni-1', 1), eni('eni-2', 2, CLAIM)] },
    ...{ awaited: undefined, surplus: [], desired: 1, limit: 2 },
  },
  {
    title: 'counts on no place that a shared ENI has',
    status: { allocatableDirectENIs: 1, staticDirectENIs: 1, eniInfos: [eni('eni-1', 1)] },
    ...{ awaited: 1, surplus: ['eni-1'], desired: 0, limit: 1 },
  },
]) {
  test(`exclusiveDemand: ${title}`, (t) => {
    const supply = supplyOf(status);
    t.is(supply?.warm.awaited, awaited);
    t.is(supply?.warm.limit, limit, 'kubelet is told of as many as before');
    if (supply === undefined) return;
    const demand = exclusiveDemand(applyExclusiveSupply(new Map(), supply.enis), supply.warm, { waiting: 0, nowMs: 0 });
    t.deepEqual(
      demand.surplus.map(({ eniId }) => eniId),
      surplus,
    );
    t.is(demand.desired, desired);
  });
}
