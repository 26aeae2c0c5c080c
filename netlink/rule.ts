import { constants } from 'node:os';
import type { Conn, ReadRequest } from './conn.ts';
import { change, failureOf } from './exchange.ts';
import { isNetlinkError, NetlinkError } from './netlink-error.ts';
import { RULE, type RuleMessage, type RuleSpec } from './rule-message.ts';
import { RTM_GETRULE, RTM_NEWRULE } from './uapi/rtnetlink.ts';

/** Narrows a list of rules; filtered here, because the kernel cannot. */
type RuleFilter = {
  /** AF_INET or AF_INET6. */
  readonly family: number;
  readonly priority?: number;
  readonly table?: number;
  readonly protocol?: number;
};

/** How reliable a list of rules must be. */
type RuleListOptions = {
  /**
   * 'auto' (default): a list that came in several pieces is read until two readings agree; 'always': every list is;
   * 'never': one reading. The kernel continues a dump by position and does not report that earlier rules were deleted
   * meanwhile: existing rules are then missing from the list.
   */
  readonly confirm?: 'auto' | 'always' | 'never';
};

/** Policy rules of one namespace. @see ip-rule(8) */
export type RuleService = {
  /** Adds a rule unless an equal one exists. @throws NetlinkError EEXIST */
  add(spec: RuleSpec): void;
  /** Deletes the first rule that matches the given fields. @throws NetlinkError ENOENT when there is none */
  delete(spec: RuleSpec): void;
  /**
   * Lists rules in their order; a family that the kernel lacks (`ipv6.disable=1`) has none.
   * @throws NetlinkError EAGAIN when they change faster than they can be read
   */
  list(filter: RuleFilter, options?: RuleListOptions): readonly RuleMessage[];
};

/** Most readings until two in a row must agree. */
const MAX_READINGS = 8;

/** Creates the rule service of a connection. */
export function createRuleService(conn: Conn): RuleService {
  return {
    add: (spec) => change(conn, { object: 'rule', verb: 'add', spec }),
    delete: (spec) => change(conn, { object: 'rule', verb: 'delete', spec }),
    list(filter, options = {}) {
      const request: ReadRequest<RuleMessage> = {
        type: RTM_GETRULE,
        answerType: RTM_NEWRULE,
        codec: RULE,
        body: { family: filter.family },
        fail: failureOf({ object: 'rule', verb: 'list', spec: filter }),
      };
      return readOfFamily(conn, request, options.confirm ?? 'auto').filter(
        (rule) =>
          rule.family === filter.family &&
          (filter.priority === undefined || rule.priority === filter.priority) &&
          (filter.table === undefined || rule.table === filter.table) &&
          (filter.protocol === undefined || rule.protocol === filter.protocol),
      );
    },
  };
}

/** For a family without rules the kernel returns an error; for routes it does not. */
function readOfFamily(
  conn: Conn,
  request: ReadRequest<RuleMessage>,
  confirm: 'auto' | 'always' | 'never',
): readonly RuleMessage[] {
  try {
    return readConfirmed(conn, request, confirm);
  } catch (error) {
    if (isNetlinkError(error, 'EAFNOSUPPORT')) return [];
    throw error;
  }
}

function readConfirmed(
  conn: Conn,
  request: ReadRequest<RuleMessage>,
  confirm: 'auto' | 'always' | 'never',
): readonly RuleMessage[] {
  let dump = conn.dump(request);
  if (confirm === 'never' || (confirm === 'auto' && dump.datagrams <= 1)) {
    return dump.messages;
  }
  for (let reading = 1; reading < MAX_READINGS; reading++) {
    const repeated = conn.dump(request);
    // A list in one piece was made under one lock.
    if ((confirm === 'auto' && repeated.datagrams <= 1) || areEqual(dump.messages, repeated.messages)) {
      return repeated.messages;
    }
    dump = repeated;
  }
  const detail = `no two of ${MAX_READINGS} readings agree`;
  throw new NetlinkError({ errno: constants.errno.EAGAIN, ...request.fail(), detail });
}

function areEqual(a: readonly RuleMessage[], b: readonly RuleMessage[]): boolean {
  return a.length === b.length && JSON.stringify(a) === JSON.stringify(b);
}
