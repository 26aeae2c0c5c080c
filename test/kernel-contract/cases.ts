import { ADDRESS_CASES } from './address-cases.ts';
import type { ContractCase } from './contract-case.ts';
import { LINK_CASES } from './link-cases.ts';
import { MONITOR_CASES } from './monitor-cases.ts';
import { OTHER_POD_CASES } from './other-pod-cases.ts';
import { ROUTE_CASES } from './route-cases.ts';
import { RULE_CASES } from './rule-cases.ts';
import { SETTING_CASES } from './setting-cases.ts';
import { TABLE_CASES } from './table-cases.ts';
import { WIRING_CASES } from './wiring-cases.ts';

/** All that the model of the kernel promises: each case passes on the real kernel too. */
export const CONTRACT_CASES: readonly ContractCase[] = [
  ...LINK_CASES,
  ...ADDRESS_CASES,
  ...ROUTE_CASES,
  ...RULE_CASES,
  ...SETTING_CASES,
  ...MONITOR_CASES,
  ...TABLE_CASES,
  ...WIRING_CASES,
  ...OTHER_POD_CASES,
];
