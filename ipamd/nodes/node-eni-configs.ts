import { NODE_ENI_CONFIG_KIND } from '../../crd/node-eni-config-fields.ts';
import { resourceTypeOf } from '../../kube/resource-types.ts';

/** The resource type of NodeENIConfigs. */
export const NODE_ENI_CONFIGS = resourceTypeOf(NODE_ENI_CONFIG_KIND);
