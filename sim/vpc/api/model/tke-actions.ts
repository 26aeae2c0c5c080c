import type { ActionTable } from './call.ts';
import { instanceLimits } from './limits.ts';

/** The APIs of the cluster service that we call. */
export const TKE_ACTIONS: ActionTable = {
  DescribeVpcCniPodLimits: {
    required: [],
    optional: ['Zone', 'InstanceFamily', 'InstanceType'],
    handle: ({ params }) => {
      const InstanceType = params.text('InstanceType');
      const cores = Number(/\d+$/.exec(InstanceType)?.[0] ?? 0);
      if (cores === 0) return { TotalCount: 0, PodLimitsInstanceSet: [] };
      const { enis, ipsPerEni } = instanceLimits(cores);
      const routed = (enis - 1) * (ipsPerEni - 1);
      const PodLimits = {
        TKERouteENINonStaticIP: routed,
        TKERouteENIStaticIP: routed,
        TKEDirectENI: enis - 1,
        TKESubENI: 0,
      };
      return { TotalCount: 1, PodLimitsInstanceSet: [{ Zone: params.text('Zone'), InstanceType, PodLimits }] };
    },
  },
};
