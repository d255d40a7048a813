"""Experiments, blocking."""

from conspectus.bridge.blocking_methods import blocking
from conspectus.engine.experiments import ExperimentService
from conspectus.sync.blocking_service import BlockingService


class BlockingExperiments(BlockingService[ExperimentService]):
    """Question sets, and runs that measure windows."""

    create_set = blocking(ExperimentService.create_set)
    add_questions = blocking(ExperimentService.add_questions)
    list_sets = blocking(ExperimentService.list_sets)
    get_set = blocking(ExperimentService.get_set)
    delete_set = blocking(ExperimentService.delete_set)
    start_run = blocking(ExperimentService.start_run)
    list_runs = blocking(ExperimentService.list_runs)
    get_run = blocking(ExperimentService.get_run)
    get_run_question = blocking(ExperimentService.get_run_question)
    delete_run = blocking(ExperimentService.delete_run)
    use_run = blocking(ExperimentService.use_run)
    undo_defaults = blocking(ExperimentService.undo_defaults)
