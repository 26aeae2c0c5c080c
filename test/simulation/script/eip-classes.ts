import { between } from '../streams.ts';
import { below, drawCloudFault, type FaultClass, oneOf } from './fault-class.ts';

/** Pods that have EIPs, one after the other under few names. */
export const EIP_PODS = 'Pods with EIPs';

const EIP_CALLS: readonly string[] = [
  ...['AllocateAddresses', 'AssociateAddress', 'DisassociateAddress', 'ReleaseAddresses'],
];

/** Pods with EIPs, and what goes wrong with the calls for them. */
export const EIP_CLASSES: readonly FaultClass[] = [
  {
    ...{ name: EIP_PODS, rate: 1.5, share: 0.3 },
    draw: (draw, { nodes }) => {
      const [eip, node] = [oneOf(draw, ['made', 'kept'] as const), below(draw, nodes)];
      const name = `${eip}-${below(draw, 2)}`;
      return [
        { kind: 'pod', name, node, eip },
        { kind: 'end', name, node, afterMs: Math.round(between(draw, [10_000, 120_000])) },
      ];
    },
  },
  { name: 'calls for EIPs', rate: 2, isOf: 'EIPs', draw: (draw) => [drawCloudFault(draw, EIP_CALLS)] },
];
