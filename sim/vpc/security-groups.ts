import type { NetnsView } from '../support/netns.ts';
import type { SecurityRule } from './api/model/security-group-book.ts';

/** Where checks of load balancers come from. */
const PROBE_RANGE = '100.64.0.0/10';

/** Mark of connections that security groups of targets are not asked about: those of a load balancer whose own groups decide alone. */
export const PASSED_MARK = 1;

/**
 * Asks the security groups of an ENI at its port, where packets leave the router for it. What was admitted once goes on, both
 * ways. Checks of load balancers begin in the router itself. Made with the first rules; without them everyone is admitted.
 */
const RULESET = `
table ip groups {
  set passed { type ipv4_addr . inet_service
  }
  map ports { type ifname : verdict
  }
  chain forward { type filter hook forward priority 10; policy accept;
    ct state established,related accept
    ct mark ${PASSED_MARK} accept
    oifname vmap @ports
  }
  chain probes { type filter hook output priority 10; policy accept;
    ip saddr != ${PROBE_RANGE} accept
    ct state established,related accept
    ip daddr . th dport @passed accept
    oifname vmap @ports
  }
}
`;

/** An address and port that checks reach. */
type Checked = { readonly ip: string; readonly port: number };

/** The security groups of ENIs and nodes, in the router's namespace. Changes are made one after the other. */
export class SecurityGroups {
  readonly #router: NetnsView;
  readonly #ports = new Set<string>();
  /** By listener. */
  readonly #passed = new Map<string, readonly Checked[]>();
  #hasTable = false;
  #work: Promise<void> = Promise.resolve();

  constructor(router: NetnsView) {
    this.#router = router;
  }

  /** Has a port admit what these rules say, the first that fits; undefined: everyone. Idempotent. */
  set(port: string, rules: readonly SecurityRule[] | undefined): Promise<void> {
    return this.#inTurn(async () => {
      if (rules === undefined && !this.#ports.has(port)) return;
      await this.#prepare();
      const lines =
        rules === undefined
          ? [
              `delete element ip groups ports { "${port}" }`,
              `flush chain ip groups ${port}`,
              `delete chain ip groups ${port}`,
            ]
          : [
              `add chain ip groups ${port}`,
              `flush chain ip groups ${port}`,
              ...rules.map((rule) => `add rule ip groups ${port} ${matchOf(rule)}`),
              `add rule ip groups ${port} drop`,
              ...(this.#ports.has(port) ? [] : [`add element ip groups ports { "${port}" : goto ${port} }`]),
            ];
      await this.#router.nft(`${lines.join('\n')}\n`);
      if (rules === undefined) this.#ports.delete(port);
      else this.#ports.add(port);
    });
  }

  /** Lets checks of a listener pass to these targets whatever their groups say, and to no others. Idempotent. */
  pass(listenerId: string, targets: readonly Checked[]): Promise<void> {
    return this.#inTurn(async () => {
      if (targets.length === 0 && !this.#passed.has(listenerId)) return;
      if (targets.length === 0) this.#passed.delete(listenerId);
      else this.#passed.set(listenerId, targets);
      if (this.#hasTable) await this.#router.nft(this.#passedLines());
    });
  }

  async #prepare(): Promise<void> {
    if (this.#hasTable) return;
    await this.#router.nft(RULESET + this.#passedLines());
    this.#hasTable = true;
  }

  #passedLines(): string {
    const all = new Set([...this.#passed.values()].flat().map(({ ip, port }) => `${ip} . ${port}`));
    const added = all.size === 0 ? '' : `add element ip groups passed { ${[...all].join(', ')} }\n`;
    return `flush set ip groups passed\n${added}`;
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#work.then(work);
    this.#work = done.catch(() => undefined);
    return done;
  }
}

function matchOf({ cidr, protocol, port, lastPort, isAccepted }: SecurityRule): string {
  const layer4 = protocol === undefined ? '{ tcp, udp }' : protocol.toLowerCase();
  const range = lastPort === undefined ? `${port}` : `${port}-${lastPort}`;
  const ports = port === undefined ? '' : ` th dport ${range}`;
  const service = protocol === undefined && port === undefined ? '' : ` meta l4proto ${layer4}${ports}`;
  return `ip saddr ${cidr}${service} ${isAccepted ? 'accept' : 'drop'}`;
}
