/** Names that `ip` prints in place of numbers. Each is looked up when it is first needed. */
export type IpNames = {
  /** Of an interface; 'if7' for one that is gone, as iproute2 calls it. */
  link(ifindex: number): string;
  table(table: number): string;
  protocol(protocol: number): string;
  scope(scope: number): string;
  /** Of a link group. */
  group(group: number): string;
  /** Of a TOS or traffic class. */
  dsfield(tos: number): string;
  realm(realm: number): string;
  /** IPPROTO_*: 'tcp'. */
  ipProtocol(protocol: number): string;
  user(uid: number): string;
  userGroup(gid: number): string;
};

/** One object of an `ip -j` answer; its members stand in the order of `ip`. */
export type IpObject = Readonly<Record<string, unknown>>;
