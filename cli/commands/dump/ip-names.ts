/** Names that `ip` prints in place of numbers. Each is looked up when it is first needed. */
export type IpNames = {
  /** Name of an interface; 'if7' for one that does not exist any more, as iproute2 prints it. */
  link(ifindex: number): string;
  table(table: number): string;
  protocol(protocol: number): string;
  scope(scope: number): string;
  /** Name of a link group. */
  group(group: number): string;
  /** Name of a TOS or traffic class. */
  dsfield(tos: number): string;
  realm(realm: number): string;
  /** Name of a protocol, IPPROTO_*: 'tcp'. */
  ipProtocol(protocol: number): string;
};

/** One object of the output of `ip -j`; its members are in the order of `ip`. */
export type IpObject = Readonly<Record<string, unknown>>;
