/** Paths of our programs in a guest. The agent's addon lies beside it. */
export const GUEST_PROGRAMS = {
  agent: '/opt/tke-eni/tke-eni-agent',
  addon: '/opt/tke-eni/ffi-rs.node',
  /** The launcher, which hands calls to the agent. */
  plugin: '/opt/tke-eni/tke-route-eni',
} as const;
