import type { EniQuotaPort } from '../eni-quotas.ts';
import type { Caller } from './caller.ts';
import { decodeEniPage } from './decode/eni.ts';
import { decodeVpcLimit } from './decode/others.ts';

const MAX_ENIS = 'vpc-max-enis';

/** Creates the part of the port for quotas of ENIs. */
export function createEniQuotaPort(call: Caller): EniQuotaPort {
  return {
    ofVpc: async (vpcId, context) => {
      const limit = decodeVpcLimit(await call('DescribeVpcLimits', { LimitTypes: [MAX_ENIS] }, context), MAX_ENIS);
      if (limit === undefined) return undefined;
      const Filters = [
        { Name: 'vpc-id', Values: [vpcId] },
        { Name: 'is-primary', Values: ['false'] },
      ];
      const page = decodeEniPage(await call('DescribeNetworkInterfaces', { Filters, Offset: 0, Limit: 1 }, context));
      return { limit, used: page.total };
    },
  };
}
