import { NODE_ENI_CONFIG_KIND } from '../../crd/node-eni-config-fields.ts';
import { resourceTypeOf } from '../../kube/resource-types.ts';

/** NodeENIConfigs, as the API server knows them. */
export const NODE_ENI_CONFIGS = resourceTypeOf(NODE_ENI_CONFIG_KIND);
