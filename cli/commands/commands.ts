import type { Command } from '../command/command.ts';
import { BENCH } from './bench/command.ts';
import { BUNDLE } from './bundle/command.ts';
import { CLUSTER } from './cluster/command.ts';
import { CHECK, DIFF } from './diff/command.ts';
import { DOCTOR } from './doctor/command.ts';
import { ADDRS, DUMP, LINKS, NEIGH, ROUTES, RULES } from './dump/command.ts';
import { EVENTS } from './events/command.ts';
import { EXPLAIN } from './explain/command.ts';
import { GRAPH } from './graph/command.ts';
import { LB } from './lb/command.ts';
import { ENIS, PODS, POOL } from './pool/command.ts';
import { REPAIR } from './repair/command.ts';
import { STATUS } from './status/command.ts';
import { TOP } from './top/command.ts';
import { WATCH } from './watch/command.ts';

/** Every command, in the order of the help. A new command needs a line here. */
export const COMMANDS: readonly Command[] = [
  STATUS,
  POOL,
  PODS,
  ENIS,
  EVENTS,
  WATCH,
  TOP,
  ROUTES,
  RULES,
  LINKS,
  ADDRS,
  NEIGH,
  DUMP,
  EXPLAIN,
  GRAPH,
  DIFF,
  CHECK,
  REPAIR,
  DOCTOR,
  CLUSTER,
  LB,
  BUNDLE,
  BENCH,
];
