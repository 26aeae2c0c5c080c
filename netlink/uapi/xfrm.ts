/**
 * Constants of IPsec policies, kernel names kept.
 * @see uapi/linux/xfrm.h
 */
export const XFRM_MSG_NEWPOLICY = 19;
export const XFRM_MSG_GETPOLICY = 21;

export const XFRM_POLICY_IN = 0;
export const XFRM_POLICY_OUT = 1;
export const XFRM_POLICY_FWD = 2;

export const XFRM_POLICY_ALLOW = 0;
export const XFRM_POLICY_BLOCK = 1;

export const XFRMA_TMPL = 5;
export const XFRMA_MARK = 21;
export const XFRMA_IF_ID = 31;
