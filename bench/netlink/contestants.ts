import type { Request } from '../../netlink/request.ts';
import { AF_INET } from '../../netlink/uapi/netlink.ts';
import { type Bed, timed } from './bed.ts';

/** Milliseconds of what each contestant does in a round, in this order; the namespace is then as it was. */
export type Times = {
  readonly 'route-add': number;
  readonly 'route-dump': number;
  readonly 'route-del': number;
  readonly 'rule-add': number;
  readonly 'rule-del': number;
};
/** One way to do the steps, ready to do them. */
export type Contestant = () => Times;

/** Table of the routes. */
export const TABLE = 100;
const RULE_TABLE = 101;
const RULE_PRIORITY = 1536;

/** `ip -batch`, a process for each step; its start and the reading of its file are part of the time. */
export function ipBatch(bed: Bed, rules: number): Contestant {
  const routes = (verb: string) => bed.dsts.map((dst) => `route ${verb} ${dst} dev bench0 table ${TABLE}`);
  const rulesOf = (verb: string) =>
    bed.dsts.slice(0, rules).map((src) => `rule ${verb} from ${src} pref ${RULE_PRIORITY} lookup ${RULE_TABLE}`);
  const files = {
    routeAdd: bed.batchFile('route-add', routes('add')),
    routeDel: bed.batchFile('route-del', routes('del')),
    ruleAdd: bed.batchFile('rule-add', rulesOf('add')),
    ruleDel: bed.batchFile('rule-del', rulesOf('del')),
  };
  return () => ({
    'route-add': timed(() => bed.ip('-batch', files.routeAdd)),
    'route-dump': timed(() => bed.ip('-j', 'route', 'show', 'table', String(TABLE))),
    'route-del': timed(() => bed.ip('-batch', files.routeDel)),
    'rule-add': timed(() => bed.ip('-batch', files.ruleAdd)),
    'rule-del': timed(() => bed.ip('-batch', files.ruleDel)),
  });
}

/** Ours, one request after another: a write and a read each, as `ip -batch` does. */
export function ourSingles(bed: Bed, rules: number): Contestant {
  const { route, rule } = bed.rtnl;
  const srcs = bed.dsts.slice(0, rules);
  const eachRoute = (verb: 'add' | 'delete') => {
    for (const dst of bed.dsts) {
      route[verb]({ dst, oif: bed.oif, table: TABLE });
    }
  };
  const eachRule = (verb: 'add' | 'delete') => {
    for (const src of srcs) {
      rule[verb]({ src, priority: RULE_PRIORITY, table: RULE_TABLE });
    }
  };
  return () => ({
    'route-add': timed(() => eachRoute('add')),
    'route-dump': timed(() => expectRoutes(bed)),
    'route-del': timed(() => eachRoute('delete')),
    'rule-add': timed(() => eachRule('add')),
    'rule-del': timed(() => eachRule('delete')),
  });
}

/** Ours, up to 128 requests in one write. */
export function ourBatches(bed: Bed, rules: number): Contestant {
  const srcs = bed.dsts.slice(0, rules);
  const all = (requests: readonly Request[]) => {
    // A benchmark of refused requests would be a lie.
    for (const outcome of bed.rtnl.execute(requests)) {
      if (outcome.kind === 'error') {
        throw outcome.error;
      }
    }
  };
  const routes = (verb: 'add' | 'delete'): readonly Request[] =>
    bed.dsts.map((dst) => ({ object: 'route', verb, spec: { dst, oif: bed.oif, table: TABLE } }));
  const rulesOf = (verb: 'add' | 'delete'): readonly Request[] =>
    srcs.map((src) => ({ object: 'rule', verb, spec: { src, priority: RULE_PRIORITY, table: RULE_TABLE } }));
  return () => ({
    'route-add': timed(() => all(routes('add'))),
    'route-dump': timed(() => expectRoutes(bed)),
    'route-del': timed(() => all(routes('delete'))),
    'rule-add': timed(() => all(rulesOf('add'))),
    'rule-del': timed(() => all(rulesOf('delete'))),
  });
}

function expectRoutes(bed: Bed): void {
  const count = bed.rtnl.route.list({ family: AF_INET, table: TABLE }).length;
  if (count !== bed.dsts.length) {
    throw new Error(`listed ${count} of ${bed.dsts.length} routes`);
  }
}
