import { IDS_PER_CALL } from '../batches.ts';
import { classifyError } from '../classify-error.ts';
import type { CallContext, RoutePort, VpcRoute, VpcRouteSpec } from '../cloud.ts';
import { isCloudError } from '../cloud-error.ts';
import type { Caller } from './caller.ts';
import { decodeCreatedRoutes, decodeRoutePage } from './decode/route.ts';
import { readPages } from './paged.ts';

/** The only kind of next hop that the API knows. */
const GATEWAY_TYPE = 'NORMAL_CVM';

/** Creates the part of the port for routes of a whole VPC: the "global routes" of the VPC API. */
export function createRoutePort(call: Caller): RoutePort {
  const create = async (vpcId: string, spec: VpcRouteSpec, context: CallContext): Promise<VpcRoute> => {
    const answer = await call('CreateGlobalRoutes', createRequest(vpcId, spec), context);
    const made = decodeCreatedRoutes(answer).find((one) => one.cidr === spec.cidr && one.gatewayIp === spec.gatewayIp);
    if (made !== undefined) return made;
    const text = `the answer lacks the route to ${spec.cidr} by ${spec.gatewayIp}`;
    throw classifyError({ code: 'BAD_ANSWER', action: 'CreateGlobalRoutes', text });
  };
  const remove = async (vpcId: string, routeId: string, context: CallContext): Promise<void> => {
    await call('DeleteGlobalRoutes', { VpcId: vpcId, GlobalRouteIds: [routeId] }, context);
  };
  return {
    list: async (vpcId, context) => {
      const Filters = [{ Name: 'vpc-id', Values: [vpcId] }];
      const readPage = async (Offset: number) =>
        decodeRoutePage(await call('DescribeGlobalRoutes', { Filters, Offset, Limit: IDS_PER_CALL }, context));
      const { objects, isConsistent } = await readPages(readPage, (route) => route.routeId);
      return { routes: objects, isConsistent };
    },
    create,
    delete: remove,
    replace: async (vpcId, route, gatewayIp, context) => {
      await remove(vpcId, route.routeId, context).catch((error: unknown) => {
        if (!isCloudError(error, 'gone')) throw error;
      });
      return await create(vpcId, { ...route, gatewayIp }, context);
    },
  };
}

function createRequest(vpcId: string, { cidr, gatewayIp, description }: VpcRouteSpec) {
  const route = { GatewayType: GATEWAY_TYPE, GatewayId: gatewayIp, DestinationCidrBlock: cidr };
  return { VpcId: vpcId, GlobalRoutes: [{ ...route, ...(description === '' ? {} : { Description: description }) }] };
}
