import { ACCESS_CASES } from './contract/access.ts';
import type { ContractCase } from './contract/contract-case.ts';
import { CUSTOM_CASES } from './contract/custom.ts';
import { DISCOVERY_CASES } from './contract/discovery.ts';
import { INGRESS_CASES } from './contract/ingresses.ts';
import { LIST_CASES } from './contract/lists.ts';
import { OBJECT_CASES } from './contract/objects.ts';
import { PATCH_CASES } from './contract/patches.ts';
import { POD_CASES } from './contract/pods.ts';
import { POLICY_CASES } from './contract/policies.ts';
import { SERVICE_CASES } from './contract/services.ts';
import { WATCH_CASES } from './contract/watches.ts';
import { WEBHOOK_CASES } from './contract/webhooks.ts';

/** What this server and a real kube-apiserver both do, case by case. */
export const CONTRACT_CASES: readonly ContractCase[] = [
  ...OBJECT_CASES,
  ...PATCH_CASES,
  ...LIST_CASES,
  ...WATCH_CASES,
  ...POD_CASES,
  ...SERVICE_CASES,
  ...INGRESS_CASES,
  ...WEBHOOK_CASES,
  ...POLICY_CASES,
  ...CUSTOM_CASES,
  ...ACCESS_CASES,
  ...DISCOVERY_CASES,
];
