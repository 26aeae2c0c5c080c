import { CLOUD_OPTIONS } from '../../command/cloud-options.ts';
import type { ArgsOf } from '../../command/command.ts';
import { OUTPUT_OPTION } from '../pool/output-option.ts';

/** Options of `lb`. */
export const OPTIONS = {
  ...OUTPUT_OPTION,
  plan: {
    type: 'boolean',
    summary: 'print what the controller would change for Services and Ingresses, and why; nothing is changed',
  },
  from: {
    type: 'string',
    summary: 'also ask the security groups whether they admit this client',
    metavar: 'ADDRESS',
  },
  'cluster-id': {
    type: 'string',
    summary: '--clusterid of the controller; default: the one in the tags of its load balancers',
    metavar: 'ID',
  },
  'vpc-id': {
    type: 'string',
    summary: '--vpc-id of the controller; default: the VPC of all instances of Nodes',
    metavar: 'ID',
  },
  'load-balancer-class': {
    type: 'string',
    summary: '--load-balancer-class of the controller; default: Services without a class alone',
    metavar: 'CLASS',
    default: '',
  },
  'ingress-without-class': {
    type: 'boolean',
    summary: '--ingress-without-class of the controller, for --plan',
  },
  ...CLOUD_OPTIONS,
} as const;

/** Positional arguments of `lb`. */
export const POSITIONALS = {
  what: {
    summary:
      'a Service (NAMESPACE/NAME), with --plan also an Ingress; or where clients connect to (ADDRESS or ADDRESS:PORT); default: all',
    isOptional: true,
  },
} as const;

/** Arguments of `lb`. */
export type LbArgs = ArgsOf<typeof OPTIONS, typeof POSITIONALS>;
