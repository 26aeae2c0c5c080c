import { Channel } from './channel.ts';
import { Conn } from './conn.ts';
import { openSocket } from './open-socket.ts';
import { NETLINK_XFRM } from './uapi/netlink.ts';
import { XFRM_MSG_GETPOLICY, XFRM_MSG_NEWPOLICY } from './uapi/xfrm.ts';
import { XFRM_POLICY, XFRM_POLICY_ID, type XfrmPolicyMessage } from './xfrm-policy-message.ts';

/**
 * Lists the IPsec policies of the current network namespace, those of single sockets too.
 * @throws LibcError EPROTONOSUPPORT where the kernel has no IPsec; NetlinkError EPERM without CAP_NET_ADMIN
 */
export function listXfrmPolicies(): readonly XfrmPolicyMessage[] {
  const conn = new Conn(new Channel(openSocket({ protocol: NETLINK_XFRM })));
  try {
    return conn.dump({
      type: XFRM_MSG_GETPOLICY,
      answerType: XFRM_MSG_NEWPOLICY,
      codec: { ...XFRM_POLICY_ID, read: XFRM_POLICY.read },
      body: {},
      fail: () => ({ op: 'XFRM_MSG_GETPOLICY', request: 'ip xfrm policy' }),
    }).messages;
  } finally {
    conn.close();
  }
}
