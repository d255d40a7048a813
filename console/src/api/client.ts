/** The client of this server: the session of the browser says who asks. */
import { connect } from "@conspectus/client";

export { ProblemError as Problem, type Schemas } from "@conspectus/client";

export const api = connect(location.origin, { timeout: 0 });
